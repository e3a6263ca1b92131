// Matrix products on the CPU: which kernel a product uses, how it is blocked and cut over threads.
#include "matmul.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "../../trace/buffer.hpp"
#include "../threads.hpp"
#include "code_cache.hpp"
#include "matmul_emit.hpp"

namespace vt::detail::cpu {

#if VT_HAS_LLVM_HEADERS

namespace matmul_run {

const char* at_element(const void* p, std::int64_t i, DType d) { return static_cast<const char*>(p) + i * static_cast<std::int64_t>(size_of(d)); }
char* at_element(void* p, std::int64_t i, DType d) { return static_cast<char*>(p) + i * static_cast<std::int64_t>(size_of(d)); }

// What of a spec the emitted code depends on. `rows_matter`: m is baked in (batched direct products).
std::string key_of(const char* kind, const MatmulSpec& s, bool rows_matter) {
  std::string key = kind;
  const auto add = [&](std::int64_t v) { key += ' ' + std::to_string(v); };
  for (DType d : {s.a_dtype, s.b_dtype, s.accumulate, s.result}) (key += ' ') += vt::name_of(d);
  if (rows_matter) add(s.m), add(s.a_batch), add(s.b_batch);
  else key += " one";
  for (std::int64_t v : {s.n, s.k, s.a_row, s.a_column, s.b_row, s.b_column}) add(v);
  return key;
}

// Work is cut into pieces of about this many multiply-adds, so that small products stay on one thread.
constexpr std::int64_t least_work = 1 << 17;
std::int64_t grain_for(std::int64_t work_of_one) { return std::max<std::int64_t>(1, least_work / std::max<std::int64_t>(1, work_of_one)); }

// Copies b as [k][n] of its own dtype, whatever its strides. Vector transposes where b runs along k.
class Repacker {
 public:
  explicit Repacker(const MatmulSpec& s) : s_(s) {
    const std::size_t size = size_of(s.b_dtype);
    if (s.b_row == 1 && s.b_column != 1 && (size == 4 || size == 8)) {
      // Only the size matters to a copy: f32 stands for all 4-byte types.
      type_ = size == 4 ? f32 : f64;
      lanes_ = host_target().lanes(size);
      const std::string name = "vt_transpose";
      code_ = cached_code("transpose " + std::to_string(size) + " " + std::to_string(lanes_), {&name, 1},
                          [&](IrBuilder& b) { emit_transpose_tile(b, name, type_, lanes_); });
    }
  }

  void operator()(const void* b, void* to, std::int64_t n_begin, std::int64_t n_end, std::int64_t k_begin, std::int64_t k_end, std::int64_t to_row) const {
    const DType d = s_.b_dtype;
    std::int64_t n = n_begin;
    if (code_) {
      auto* tile = code_->function<TransposeFunction>();
      for (; n + lanes_ <= n_end; n += lanes_) {
        std::int64_t k = k_begin;
        for (; k + lanes_ <= k_end; k += lanes_)
          tile(at_element(b, n * s_.b_column + k, d), at_element(to, (k - k_begin) * to_row + (n - n_begin), d), s_.b_column, to_row);
        copy(b, to, n, n + lanes_, k, k_end, n_begin, k_begin, to_row);
      }
    }
    copy(b, to, n, n_end, k_begin, k_end, n_begin, k_begin, to_row);
  }

 private:
  void copy(const void* b, void* to, std::int64_t n0, std::int64_t n1, std::int64_t k0, std::int64_t k1, std::int64_t n_begin, std::int64_t k_begin, std::int64_t to_row) const {
    const std::size_t size = size_of(s_.b_dtype);
    for (std::int64_t k = k0; k < k1; ++k) {
      const char* from = at_element(b, k * s_.b_row + n0 * s_.b_column, s_.b_dtype);
      char* out = at_element(to, (k - k_begin) * to_row + (n0 - n_begin), s_.b_dtype);
      if (s_.b_column == 1) {
        std::memcpy(out, from, static_cast<std::size_t>(n1 - n0) * size);
        continue;
      }
      for (std::int64_t n = n0; n < n1; ++n, out += size, from += s_.b_column * static_cast<std::int64_t>(size)) std::memcpy(out, from, size);
    }
  }

  const MatmulSpec& s_;
  std::shared_ptr<const Code> code_;
  DType type_ = f32;
  int lanes_ = 0;
};

// One function call per range of products or rows; b is brought into [k][n] order first where it is not.
class Direct : public Matmul {
 public:
  Direct(const MatmulSpec& s, bool dots) : s_(s), kernel_(s), dots_(dots), repack_(s_) {
    if (!dots && s.b_column != 1) {
      kernel_.b_row = s.n;
      kernel_.b_column = 1;
      if (s.batch > 1) kernel_.b_batch = s.b_batch == 0 ? 0 : s.n * s.k;
      repacked_ = true;
    }
    const std::string name = "vt_matmul";
    shape_ = best_tile(host_target(), s.accumulate);
    code_ = cached_code(key_of(dots ? "dots" : "direct", kernel_, s.batch > 1), {&name, 1}, [&](IrBuilder& b) {
      if (dots) emit_dots(b, name, kernel_, host_target());
      else emit_direct(b, name, kernel_, shape_);
    });
  }

  void run(const void* a, const void* b, void* c) const override {
    auto* f = code_->function<DirectFunction>();
    BufferRef copy;
    if (repacked_) {
      const std::int64_t copies = s_.b_batch == 0 || s_.batch == 1 ? 1 : s_.batch;
      copy = allocate(static_cast<std::size_t>(copies * s_.n * s_.k) * size_of(s_.b_dtype), "vt::matmul: operand in row order");
      parallel_ranges(copies, grain_for(s_.n * s_.k), [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i)
          repack_(at_element(b, i * s_.b_batch, s_.b_dtype), at_element(copy->data, i * s_.n * s_.k, s_.b_dtype), 0, s_.n, 0, s_.k, s_.n);
      });
      b = copy->data;
    }
    const std::int64_t total = s_.batch == 1 ? s_.m : s_.batch;
    std::int64_t grain = grain_for(s_.n * s_.k * (s_.batch == 1 ? 1 : s_.m));
    if (s_.batch == 1) grain = (grain + shape_.rows - 1) / shape_.rows * shape_.rows;
    if (grain >= total) return f(a, b, c, 0, total);
    parallel_ranges(total, grain, [&](std::int64_t from, std::int64_t to) { f(a, b, c, from, to); });
  }

  std::string describe() const override {
    return dots_ ? "dots" : "direct " + std::to_string(shape_.rows) + "x" + std::to_string(shape_.columns()) + (repacked_ ? ", b transposed" : "");
  }

 private:
  MatmulSpec s_, kernel_;
  bool dots_, repacked_ = false;
  Repacker repack_;
  TileShape shape_;
  std::shared_ptr<const Code> code_;
};

// Blocked product after Goto and van de Geijn (2008): panels of b that fit the near caches, blocks of a that fit L2.
class Packed : public Matmul {
 public:
  explicit Packed(const MatmulSpec& s) : s_(s), shape_(best_tile(host_target(), s.accumulate)) {
    // Tiles of equal height: no short one is left over.
    const std::int64_t count = (s.m + shape_.rows - 1) / shape_.rows;
    height_ = static_cast<int>((s.m + count - 1) / count);
    const int rest = static_cast<int>(s.m % height_);
    tile_ = tile(height_);
    if (rest) rest_tile_ = tile(rest);
    const std::int64_t passes = (s.k + packed_depth - 1) / packed_depth;
    depth_ = (s.k + passes - 1) / passes;
    panel_spec_ = s;
    repack_ = std::make_unique<Repacker>(panel_spec_);
  }

  void run(const void* a, const void* b, void* c) const override {
    if (s_.batch > 1 && s_.batch >= thread_count()) {
      parallel_ranges(s_.batch, 1, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t i = from; i < to; ++i) one(a, b, c, i);
      });
      return;
    }
    for (std::int64_t i = 0; i < s_.batch; ++i) one(a, b, c, i);
  }

  std::string describe() const override { return "packed " + std::to_string(height_) + "x" + std::to_string(shape_.columns()); }

 private:
  std::shared_ptr<const Code> tile(int rows) const {
    const std::string name = "vt_tile";
    std::string key = "tile " + std::to_string(rows) + "x" + std::to_string(shape_.vectors);
    for (DType d : {s_.accumulate, s_.result}) (key += ' ') += vt::name_of(d);
    return cached_code(key, {&name, 1}, [&](IrBuilder& b) { emit_packed_tile(b, name, s_, rows, shape_); });
  }

  // Element (i, j) of an operand with strides, as the accumulator's dtype, into `out`.
  void convert_run(const void* from, DType d, std::int64_t stride, std::int64_t n, void* out) const {
    if (d == s_.accumulate) {
      const std::size_t size = size_of(d);
      if (stride == 1) {
        std::memcpy(out, from, static_cast<std::size_t>(n) * size);
        return;
      }
      for (std::int64_t i = 0; i < n; ++i) std::memcpy(at_element(out, i, d), at_element(from, i * stride, d), size);
      return;
    }
    with_type(d, [&](auto in) {
      with_type(s_.accumulate, [&](auto sum) {
        using In = decltype(in);
        using Sum = decltype(sum);
        for (std::int64_t i = 0; i < n; ++i) {
          if constexpr (std::is_arithmetic_v<Sum>) static_cast<Sum*>(out)[i] = static_cast<Sum>(static_cast<const In*>(from)[i * stride]);
        }
      });
    });
  }

  void pack_b(const void* b, void* panels, std::int64_t k0, std::int64_t k1, std::int64_t panel) const {
    const std::int64_t width = shape_.columns(), n0 = panel * width, n1 = std::min(s_.n, n0 + width);
    void* out = at_element(panels, panel * width * packed_depth, s_.accumulate);
    if (n1 - n0 < width) std::memset(out, 0, static_cast<std::size_t>((k1 - k0) * width) * size_of(s_.accumulate));
    if (s_.b_dtype == s_.accumulate && s_.b_column != 1) {
      (*repack_)(b, out, n0, n1, k0, k1, width);
      return;
    }
    for (std::int64_t k = k0; k < k1; ++k)
      convert_run(at_element(b, k * s_.b_row + n0 * s_.b_column, s_.b_dtype), s_.b_dtype, s_.b_column, n1 - n0, at_element(out, (k - k0) * width, s_.accumulate));
  }

  void pack_a(const void* a, void* block, std::int64_t m0, std::int64_t m1, std::int64_t k0, std::int64_t k1) const {
    if (s_.a_column == 1 || s_.a_row != 1) {
      for (std::int64_t m = m0; m < m1; ++m)
        convert_run(at_element(a, m * s_.a_row + k0 * s_.a_column, s_.a_dtype), s_.a_dtype, s_.a_column, k1 - k0, at_element(block, (m - m0) * packed_row, s_.accumulate));
      return;
    }
    // a runs along m: read along it, in strips that keep the written rows in L1.
    for (std::int64_t strip = m0; strip < m1; strip += 16)
      for (std::int64_t k = k0; k < k1; ++k)
        for (std::int64_t m = strip; m < std::min(m1, strip + 16); ++m)
          convert_run(at_element(a, m + k * s_.a_column, s_.a_dtype), s_.a_dtype, 1, 1, at_element(block, (m - m0) * packed_row + (k - k0), s_.accumulate));
  }

  void one(const void* a, const void* b, void* c, std::int64_t i) const {
    const DType sum = s_.accumulate;
    a = at_element(a, i * s_.a_batch, s_.a_dtype);
    b = at_element(b, i * s_.b_batch, s_.b_dtype);
    c = at_element(c, i * s_.m * s_.n, s_.result);
    const std::int64_t width = shape_.columns(), panels = (s_.n + width - 1) / width;
    // About 160 rows of a, 170 kB of f32, share L2 with the panels; whole tiles, and enough blocks for every thread.
    std::int64_t block_rows = std::max<std::int64_t>(1, 160 / height_) * height_;
    const std::int64_t blocks = (s_.m + block_rows - 1) / block_rows;
    const BufferRef packed_b = allocate(static_cast<std::size_t>(panels * width * packed_depth) * size_of(sum), "vt::matmul: packed operand");
    for (std::int64_t k0 = 0; k0 < s_.k; k0 += depth_) {
      const std::int64_t k1 = std::min(s_.k, k0 + depth_);
      parallel_ranges(panels, grain_for((k1 - k0) * width * 4), [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t p = from; p < to; ++p) pack_b(b, packed_b->data, k0, k1, p);
      });
      parallel_ranges(blocks, 1, [&](std::int64_t from, std::int64_t to) {
        const BufferRef packed_a = allocate(static_cast<std::size_t>(block_rows * packed_row) * size_of(sum), "vt::matmul: packed operand");
        for (std::int64_t block = from; block < to; ++block) {
          const std::int64_t m0 = block * block_rows, m1 = std::min(s_.m, m0 + block_rows);
          pack_a(a, packed_a->data, m0, m1, k0, k1);
          for (std::int64_t p = 0; p < panels; ++p)
            for (std::int64_t m = m0; m < m1; m += height_) {
              const auto& code = m1 - m >= height_ ? tile_ : rest_tile_;
              code->function<TileFunction>()(k1 - k0, at_element(packed_a->data, (m - m0) * packed_row, sum), at_element(packed_b->data, p * width * packed_depth, sum),
                                             at_element(c, m * s_.n + p * width, s_.result), s_.n, s_.n - p * width, k0 > 0);
            }
        }
      });
    }
  }

  MatmulSpec s_, panel_spec_;
  TileShape shape_;
  int height_ = 1;
  std::int64_t depth_ = 1;
  std::shared_ptr<const Code> tile_, rest_tile_;
  std::unique_ptr<Repacker> repack_;
};

// Nothing to multiply: no elements, or sums of nothing.
class Zero : public Matmul {
 public:
  explicit Zero(const MatmulSpec& s) : bytes_(static_cast<std::size_t>(s.batch * s.m * s.n) * size_of(s.result)) {}
  void run(const void*, const void*, void* c) const override { std::memset(c, 0, bytes_); }
  std::string describe() const override { return "zero"; }

 private:
  std::size_t bytes_;
};

// c as a row when it is a column: then the other operand runs along the vectors.
MatmulSpec transposed(const MatmulSpec& s) {
  MatmulSpec t = s;
  t.m = s.n, t.n = s.m;
  t.a_dtype = s.b_dtype, t.b_dtype = s.a_dtype;
  t.a_batch = s.b_batch, t.a_row = s.b_column, t.a_column = s.b_row;
  t.b_batch = s.a_batch, t.b_row = s.a_column, t.b_column = s.a_row;
  return t;
}

class Swapped : public Matmul {
 public:
  explicit Swapped(std::shared_ptr<const Matmul> inner) : inner_(std::move(inner)) {}
  void run(const void* a, const void* b, void* c) const override { inner_->run(b, a, c); }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::shared_ptr<const Matmul> inner_;
};

}  // namespace matmul_run

std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& given) {
  using namespace matmul_run;
  if (!llvm_missing_reason().empty()) return nullptr;
  MatmulSpec s = given;
  if (s.batch * s.m * s.n == 0 || s.k == 0) return std::make_shared<Zero>(s);
  // A batch over which b does not vary is more rows of one product.
  if (s.batch > 1 && s.b_batch == 0 && s.a_batch == s.m * s.a_row) {
    s.m *= s.batch;
    s.batch = 1;
  } else if (s.batch > 1 && s.b_batch == 0 && s.m == 1) {
    s.a_row = s.a_batch;
    s.m = s.batch;
    s.batch = 1;
  }
  // Strides of axes of size 1 mean nothing; the ones that suit the kernels are chosen.
  if (s.k == 1) s.a_column = 1, s.b_row = s.n;
  if (s.n == 1) s.b_column = 1;
  if (s.batch == 1) s.a_batch = s.b_batch = 0;
  if (s.n == 1 && s.m > 1) return std::make_shared<Swapped>(make_matmul(transposed(s)));

  const int lanes = host_target().lanes(size_of(s.accumulate));
  const bool along_k = s.a_column == 1 && s.b_row == 1 && s.b_column != 1;
  if (along_k && s.k >= 2 * lanes && (s.m <= 4 || s.n <= 2)) return std::make_shared<Direct>(s, true);
  const std::size_t b_bytes = static_cast<std::size_t>(s.n * s.k) * size_of(s.b_dtype);
  const bool packed_sum = s.result == s.accumulate || s.k <= packed_depth;  // several passes keep their sums in c
  const bool big = b_bytes > (96u << 10) && s.m >= 16;
  if (big && packed_sum) return std::make_shared<Packed>(s);
  return std::make_shared<Direct>(s, false);
}

#else

std::shared_ptr<const Matmul> make_matmul(const MatmulSpec&) { return nullptr; }

#endif

}  // namespace vt::detail::cpu
