// Matrix products on the CPU: which kernel a product uses, how it is blocked and shared among
// threads.
#include "matmul.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "../../../trace/base/buffer.hpp"
#include "../../services/threads.hpp"
#include "../llvm/code_cache.hpp"
#include "matmul_emit.hpp"
#include "matmul_kernels.hpp"
#include "matmul_pack.hpp"

namespace vt::detail::cpu {

#if VT_HAS_LLVM_HEADERS

namespace matmul_run {

// What of a spec the emitted code depends on. `rows_matter`: m is baked in (batched direct
// products). `tile_rows`: 0 where there is but one choice.
std::string key_of(const char* kind, const MatmulSpec& s, bool rows_matter, int tile_rows) {
  std::string key = kind;
  const auto add = [&](std::int64_t v) { key += ' ' + std::to_string(v); };
  for (DType d : {s.a_dtype, s.b_dtype, s.accumulate, s.result}) (key += ' ') += vt::name_of(d);
  if (tile_rows > 0) add(tile_rows);
  if (rows_matter) add(s.m), add(s.a_batch), add(s.b_batch);
  else key += " one";
  for (std::int64_t v : {s.n, s.k, s.a_row, s.a_column, s.b_row, s.b_column}) add(v);
  return key;
}

// Work is cut into pieces of about this many multiply-adds, so that small products stay on one
// thread.
constexpr std::int64_t least_work = 1 << 17;
std::int64_t grain_for(std::int64_t work_of_one) {
  return std::max<std::int64_t>(1, least_work / std::max<std::int64_t>(1, work_of_one));
}

// Copies b as [k][n] of its own dtype, a few columns at a time.
constexpr int repacked_columns = 32;

// Of few rows tiles of equal height leave no short one over, which would go through all of b again:
// 16 rows are 2 · 8, not 14 + 1 + 1. No more code than there are rows.
int tile_rows(std::int64_t m, int most) {
  if (m < most) return static_cast<int>(m);
  for (int rows = most; rows > most / 2 && m <= 4 * most; --rows)
    if (m % rows == 0) return rows;
  return most;
}

// A b that stays for many runs is laid out in panels where it is larger than the nearest cache
// holds beside the rest: read as it is, every tile's rows of a panel would come from as many lines,
// which fall into few places of that cache, and from further away each time.
constexpr std::int64_t worth_panels = 16 << 10;
// Fewer rows are too few sums to be in flight for a panel of their own.
constexpr std::int64_t least_rows_of_panels = 4;

// One function call per range of products or rows; b is brought into [k][n] order first where it is
// not.
class Direct : public Matmul {
 public:
  enum class Way { tiles, registers };
  Direct(const MatmulSpec& s, Way way, bool hurry) : s_(s), kernel_(s), way_(way), hurry_(hurry) {
    if (way == Way::tiles && s.b_column != 1) {
      kernel_.b_row = s.n;
      kernel_.b_column = 1;
      if (s.batch > 1) kernel_.b_batch = s.b_batch == 0 ? 0 : s.n * s.k;
      repacks_ = true;
      repack_ = pack_code({.from = s.b_dtype,
                           .to = s.b_dtype,
                           .lines = repacked_columns,
                           .k_adjacent = s.b_row == 1,
                           .whole_vectors = false},
                          hurry);
    }
    shape_ = best_tile(host_target(), s.accumulate);
    // Rows so few that threads share the columns, in tiles of many columns: then b is read in
    // longer runs.
    cut_.by_columns =
        way == Way::tiles && s.batch == 1 && s.m <= few_rows && s.n >= 2 * shape_.columns();
    const std::int64_t tiles = (s.m + shape_.rows - 1) / shape_.rows;
    panel_rows_ = static_cast<int>((s.m + tiles - 1) / tiles);
    if (cut_.by_columns) {
      const std::int64_t sums = static_cast<std::int64_t>(shape_.rows) * shape_.vectors;
      while (s.m * shape_.vectors * 2 <= sums && s.n >= 4 * shape_.columns()) shape_.vectors *= 2;
      shape_.rows = panel_rows_;
    } else if (way == Way::tiles && s.batch == 1) {
      shape_.rows = tile_rows(s.m, shape_.rows);
    }
    cut_.unit = cut_.by_columns ? shape_.columns() : shape_.rows;
    if (way == Way::registers) registers_ = *plan_register_products(s, host_target());
    const char* kind = cut_.by_columns ? "columns" : way == Way::tiles ? "direct" : "registers";
    code_ = cached_code(
        key_of(kind, kernel_, s.batch > 1 || cut_.by_columns, way == Way::tiles ? shape_.rows : 0),
        "vt_matmul",
        [way, spec = kernel_, shape = shape_, registers = registers_,
         columns = cut_.by_columns](IrBuilder& b) {
          if (way == Way::tiles) emit_direct(b, "vt_matmul", spec, shape, columns);
          else emit_register_products(b, "vt_matmul", spec, registers);
        },
        hurry);
  }

  PackedOperands pack(const void*, const void* b) const override {
    if (!b || (!repacks_ && !panelled())) return {};
    return {{}, panelled() ? in_panels(b) : in_row_order(b)};
  }
  std::size_t packed_bytes(bool, bool b) const override {
    return !b ? 0 : panelled() ? panel_bytes() : row_order_bytes();
  }
  std::size_t scratch_bytes(const RowsDone&, bool, bool b_packed) const override {
    if (b_packed || !repacks_) return 0;
    return static_cast<std::size_t>(copies() > 1 ? threads_for(s_.batch, 1) : 1) *
           one_in_row_order();
  }

  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands& packed) const override {
    const bool panels = packed.b && panelled();
    auto* f = (panels ? panel_code_ : code_)->function<DirectFunction>();
    // Of many products each copies its own b, which then is in the nearest cache.
    if (repacks_ && !packed.b && copies() > 1)
      return run_in_ranges(s_, cut_, done, [&](std::int64_t begin, std::int64_t end) {
        const BufferRef own = allocate(one_in_row_order(), "vt::matmul: operand in row order");
        for (std::int64_t i = begin; i < end; ++i) {
          to_row_order(b, i, own->data);
          f(at_element(a, i * s_.a_batch, s_.a_dtype), own->data,
            at_element(c, i * s_.m * s_.n, s_.result), 0, 1);
        }
      });
    const BufferRef own = packed.b || !repacks_ ? BufferRef() : in_row_order(b);
    if (packed.b || own) b = (packed.b ? packed.b : own)->data;
    run_in_ranges(s_, panels && !cut_.by_columns ? ProductCut{false, panel_rows_} : cut_, done,
                  [&](std::int64_t begin, std::int64_t end) { f(a, b, c, begin, end); });
  }

  // Of a batch, whose products each have rows of their own.
  void run_rows(const void* a, const void* b, void* c, std::int64_t rows, const RowsDone& done,
                const PackedOperands& packed) const override {
    auto* f = code_->function<DirectFunction>();
    const bool own_copies = repacks_ && copies() > 1;
    const BufferRef copied = repacks_ && !own_copies && !packed.b ? in_row_order(b) : packed.b;
    if (copied) b = copied->data;
    parallel_ranges(rows / s_.m, grain_for(s_.m * s_.n * (s_.k + s_.work_after)),
                    [&](std::int64_t from, std::int64_t to) {
                      const BufferRef own =
                          own_copies
                              ? allocate(one_in_row_order(), "vt::matmul: operand in row order")
                              : BufferRef();
                      for (std::int64_t i = from; i < to; ++i) {
                        if (own) to_row_order(b, i, own->data);
                        if (own)
                          f(at_element(a, i * s_.a_batch, s_.a_dtype), own->data,
                            at_element(c, i * s_.m * s_.n, s_.result), 0, 1);
                        else f(a, b, c, i, i + 1);
                        done(i * s_.m, (i + 1) * s_.m);
                      }
                    });
  }

  std::string describe() const override {
    if (way_ == Way::registers)
      return "in registers, " + std::to_string(registers_.products) + " at a time";
    return "direct " + std::to_string(shape_.rows) + "x" + std::to_string(shape_.columns()) +
           (repacks_ ? ", b transposed" : "");
  }

 private:
  std::int64_t copies() const { return s_.b_batch == 0 || s_.batch == 1 ? 1 : s_.batch; }
  std::size_t one_in_row_order() const { return s_.n * s_.k * size_of(s_.b_dtype); }
  std::size_t row_order_bytes() const {
    return repacks_ ? static_cast<std::size_t>(copies()) * one_in_row_order() : 0;
  }
  void to_row_order(const void* b, std::int64_t i, void* to) const {
    for (std::int64_t n = 0; n < s_.n; n += repacked_columns)
      repack_->function<PackFunction>()(at_element(b, i * s_.b_batch + n * s_.b_column, s_.b_dtype),
                                        at_element(to, n, s_.b_dtype), s_.b_column, s_.b_row, s_.n,
                                        std::min<std::int64_t>(repacked_columns, s_.n - n), s_.k);
  }
  BufferRef in_row_order(const void* b) const {
    const BufferRef copy = allocate(row_order_bytes(), "vt::matmul: operand in row order");
    parallel_ranges(copies(), grain_for(s_.n * s_.k), [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t i = from; i < to; ++i)
        to_row_order(b, i, at_element(copy->data, i * s_.n * s_.k, s_.b_dtype));
    });
    return copy;
  }

  bool panelled() const {
    return way_ == Way::tiles && s_.batch == 1 && s_.m >= least_rows_of_panels &&
           s_.n >= shape_.columns() &&
           s_.n * s_.k * static_cast<std::int64_t>(size_of(s_.accumulate)) > worth_panels;
  }
  std::int64_t panel_count() const { return (s_.n + shape_.columns() - 1) / shape_.columns(); }
  std::size_t panel_bytes() const {
    return static_cast<std::size_t>(panel_count() * shape_.columns() * s_.k) *
           size_of(s_.accumulate);
  }
  // Made for those who keep an operand; most never do.
  BufferRef in_panels(const void* b) const {
    const std::int64_t width = shape_.columns();
    std::call_once(panels_made_, [&] {
      MatmulSpec spec = s_;
      TileShape shape = shape_;
      shape.rows = panel_rows_;
      spec.b_dtype = s_.accumulate, spec.b_row = width, spec.b_column = 1;
      panel_code_ = cached_code(
          key_of(cut_.by_columns ? "panels columns" : "panels", spec, false, panel_rows_) + " of " +
              std::to_string(cut_.by_columns ? s_.m : s_.m % panel_rows_),
          "vt_matmul",
          [spec, shape, columns = cut_.by_columns](IrBuilder& builder) {
            emit_panels(builder, "vt_matmul", spec, shape, columns);
          },
          hurry_);
      pack_panel_ = pack_code({.from = s_.b_dtype,
                               .to = s_.accumulate,
                               .lines = static_cast<int>(width),
                               .lines_adjacent = s_.b_column == 1,
                               .k_adjacent = s_.b_row == 1},
                              hurry_);
    });
    const BufferRef made = allocate(panel_bytes(), "vt::matmul: packed operand");
    for (std::int64_t p = 0; p < panel_count(); ++p)
      pack_panel_->function<PackFunction>()(at_element(b, p * width * s_.b_column, s_.b_dtype),
                                            at_element(made->data, p * width * s_.k, s_.accumulate),
                                            s_.b_column, s_.b_row, width,
                                            std::min(width, s_.n - p * width), s_.k);
    return made;
  }

  MatmulSpec s_, kernel_;
  Way way_;
  bool repacks_ = false, hurry_;
  TileShape shape_;
  int panel_rows_ = 1;  ///< of a tile where b lies in panels: all alike
  ProductCut cut_;
  RegisterPlan registers_;
  std::shared_ptr<const Code> code_, repack_;
  mutable std::once_flag panels_made_;
  mutable std::shared_ptr<const Code> panel_code_, pack_panel_;
};

// Nothing to multiply: no elements, or sums of nothing.
class Zero : public Matmul {
 public:
  explicit Zero(const MatmulSpec& s)
      : rows_(s.batch * s.m), bytes_(s.batch * s.m * s.n * size_of(s.result)) {}
  void run(const void*, const void*, void* c, const RowsDone& done,
           const PackedOperands&) const override {
    std::memset(c, 0, bytes_);
    done(0, rows_);
  }
  std::size_t scratch_bytes(const RowsDone&, bool, bool) const override { return 0; }
  std::string describe() const override { return "zero"; }

 private:
  std::int64_t rows_;
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
  Swapped(std::shared_ptr<const Matmul> inner, std::int64_t rows)
      : inner_(std::move(inner)), rows_(rows) {}
  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands& packed) const override {
    const auto swapped = [&](std::int64_t begin, std::int64_t end) {
      done(begin * rows_, end * rows_);
    };
    inner_->run(b, a, c, RowsDone(swapped), {packed.b, packed.a});
  }
  PackedOperands pack(const void* a, const void* b) const override {
    const PackedOperands inner = inner_->pack(b, a);
    return {inner.b, inner.a};
  }
  std::size_t packed_bytes(bool a, bool b) const override { return inner_->packed_bytes(b, a); }
  std::size_t scratch_bytes(const RowsDone& done, bool a_packed, bool b_packed) const override {
    return inner_->scratch_bytes(done, b_packed, a_packed);
  }
  std::string describe() const override { return inner_->describe(); }

 private:
  std::shared_ptr<const Matmul> inner_;
  std::int64_t rows_;  ///< of c for one row of the inner product
};

// Bytes: of an operand that no near cache holds, and of finished rows.
constexpr std::int64_t far_operand = 512 << 10, far_turn = 1 << 20, near_turn = 32 << 10;

}  // namespace matmul_run

void run_in_ranges(const MatmulSpec& s, ProductCut cut, const RowsDone& done,
                   FunctionRef<void(std::int64_t begin, std::int64_t end)> f) {
  using namespace matmul_run;
  if (s.batch > 1) cut = {};
  const std::int64_t total = s.batch > 1      ? s.batch
                             : cut.by_columns ? s.n
                                              : s.m,
                     rows = s.batch > 1 ? s.m : 1;
  const auto whole_units = [&](std::int64_t n) { return (n + cut.unit - 1) / cut.unit * cut.unit; };
  const std::int64_t grain = whole_units(grain_for((s.batch > 1      ? s.m * s.n
                                                    : cut.by_columns ? s.m
                                                                     : s.n) *
                                                   (s.k + s.work_after)));
  if (cut.by_columns) {
    parallel_ranges(total, grain, f);
    if (done)
      parallel_ranges(s.m, grain_for(s.n * s.work_after),
                      [&](std::int64_t from, std::int64_t to) { done(from, to); });
    return;
  }
  // What works on finished rows wants them while they are in the nearest cache; but a large b,
  // which is read once for all rows of a turn, wants many.
  const std::int64_t row_bytes = rows * s.n * static_cast<std::int64_t>(size_of(s.result)),
                     b_bytes = s.n * s.k * static_cast<std::int64_t>(size_of(s.b_dtype)),
                     turn_bytes = b_bytes > far_operand ? far_turn : near_turn;
  const std::int64_t turn =
      done ? whole_units(std::max<std::int64_t>(turn_bytes / row_bytes, 1)) : total;
  parallel_ranges(total, grain, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t begin = from; begin < to; begin += turn) {
      const std::int64_t end = std::min(to, begin + turn);
      f(begin, end);
      done(begin * rows, end * rows);
    }
  });
}

std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& given, bool hurry) {
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
  if (s.m == 1 && s.a_column == 1) s.a_row = s.k;
  if (s.batch == 1) s.a_batch = s.b_batch = 0;
  if (s.any_depth) return make_packed_matmul(s);
  if (s.any_rows && s.batch == 1) return make_any_rows(s, hurry);
  if (s.any_rows) return std::make_shared<Direct>(s, Direct::Way::tiles, hurry);
  if (s.n == 1 && s.m > 1) return std::make_shared<Swapped>(make_matmul(transposed(s), hurry), s.m);

  if (suits_split(s)) return make_split_matmul(s, hurry);
  if (suits_dots(s)) return make_dots(s, hurry);
  if (plan_register_products(s, host_target()))
    return std::make_shared<Direct>(s, Direct::Way::registers, hurry);
  // Where the CPU multiplies groups of small numbers, only the packed kernel does.
  const bool grouped = product_group(s, host_target()) > 1;
  const std::size_t b_bytes =
      static_cast<std::size_t>(s.n * s.k) * (grouped ? 4 : size_of(s.b_dtype));
  const bool many = grouped || s.batch > 1 ? s.m >= 16 : s.m > few_rows && s.n > few_columns;
  if (b_bytes > (96u << 10) && many) return make_packed_matmul(s);
  return std::make_shared<Direct>(s, Direct::Way::tiles, hurry);
}

#else

std::shared_ptr<const Matmul> make_matmul(const MatmulSpec&, bool) { return nullptr; }
bool chains(const MatmulSpec&, const MatmulSpec&) { return false; }
std::shared_ptr<const ProductChain> make_chain(const MatmulSpec&, const MatmulSpec&) {
  return nullptr;
}

#endif

}  // namespace vt::detail::cpu
