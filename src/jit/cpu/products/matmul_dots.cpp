// Matrix products whose operands are both contiguous along k: sums run along vectors and are
// combined at the end. For few rows or few columns, where each element of the large operand is used
// only a few times, so that packing it would take longer than the product.
#include "matmul_kernels.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/buffer.hpp"
#include "../../services/threads.hpp"
#include "../llvm/code_cache.hpp"
#include "matmul_emit.hpp"
#include "matmul_pack.hpp"

namespace vt::detail::cpu {

namespace matmul_dots {

/// Rows and columns whose sums stay in registers beside one vector of each column and one of a row.
struct Tile {
  int rows, columns;
};
Tile best_tile(const Target& target) {
  if (target.vector_registers >= 32) return {4, 6};
  return target.fma ? Tile{4, 3} : Tile{4, 2};
}

// Sums in flight: a tile of fewer cells has several for each.
constexpr int least_sums = 8;

int simd_lanes_of(const MatmulSpec& s, const Target& target) {
  int simd_lanes = target.simd_lanes(size_of(s.accumulate));
  while (simd_lanes > 1 && s.k <= simd_lanes / 2) simd_lanes /= 2;
  return simd_lanes;
}

// The sums of the SIMD lanes of each of `x`, side by side: vectors are folded in pairs, so that
// each fold leaves half as many.
Value sums_of(IrBuilder& b, Vec<Value> x, int simd_lanes) {
  std::size_t count = 1;
  while (count < x.size()) count *= 2;
  x.resize(count, x.back());
  // Vectors consist of blocks; the elements of a block are still to be added up.
  int width = simd_lanes, blocks = 1;
  const auto fold = [&](Value p, Value q) {
    Vec<int> low, high;
    for (int block = 0; block < blocks; ++block)
      for (int i = 0; i < width; ++i) (i < width / 2 ? low : high).push_back(block * width + i);
    if (q)
      for (int block = 0; block < blocks; ++block)
        for (int i = 0; i < width; ++i)
          (i < width / 2 ? low : high).push_back(simd_lanes + block * width + i);
    return b.add(b.shuffle(p, q ? q : p, low), b.shuffle(p, q ? q : p, high));
  };
  for (; x.size() > 1; blocks *= 2, width /= 2) {
    Vec<Value> next;
    for (std::size_t i = 0; i < x.size(); i += 2) next.push_back(fold(x[i], x[i + 1]));
    x = std::move(next);
  }
  Value all = x[0];
  for (; width > 1; width /= 2) all = fold(all, {});
  return all;
}

class DotsEmitter {
 public:
  DotsEmitter(IrBuilder& b, const MatmulSpec& s, bool by_columns)
      : b_(b), s_(s), by_columns_(by_columns), simd_lanes_(simd_lanes_of(s, b.target())) {}

  void emit(const std::string& name) {
    b_.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true},
                             Param::of(i64), Param::of(i64)});
    a_ = b_.arg(0), x_ = b_.arg(1), c_ = b_.arg(2);
    const Value begin = b_.arg(3), end = b_.arg(4);
    const Tile tile = best_tile(b_.target());
    if (s_.batch > 1) {
      b_.for_range(begin, end, 1, [&](Value i) {
        a_ = b_.offset(b_.arg(0), s_.a_dtype, b_.mul(i, b_.index(s_.a_batch)));
        x_ = b_.offset(b_.arg(1), s_.b_dtype, b_.mul(i, b_.index(s_.b_batch)));
        c_ = b_.offset(b_.arg(2), s_.result, b_.mul(i, b_.index(s_.m * s_.n)));
        evenly(s_.m, tile.rows, [&](Value row, int rows) { across(row, rows, tile.columns); });
      });
    } else if (by_columns_) {
      in_range(begin, end, tile.columns, s_.n % tile.columns, [&](Value column, int columns) {
        evenly(s_.m, tile.rows, [&](Value row, int rows) { cells(row, column, rows, columns); });
      });
    } else {
      in_range(begin, end, tile.rows, s_.m % tile.rows,
               [&](Value row, int rows) { across(row, rows, tile.columns); });
    }
    b_.end_function();
  }

 private:
  using Body = FunctionRef<void(Value first, int count)>;
  // [begin, end) in pieces of `size`, of which the last of all has `rest` where that is not 0. The
  // code serves every number of pieces.
  void in_range(Value begin, Value end, int size, std::int64_t rest, Body body) {
    const Value whole =
        b_.add(begin, b_.mul(b_.div(b_.sub(end, begin), b_.index(size)), b_.index(size)));
    b_.for_range(begin, whole, size, [&](Value i) { body(i, size); });
    if (rest > 0)
      b_.if_then(b_.compare(Compare::lt, whole, end), [&] { body(whole, static_cast<int>(rest)); });
  }
  // All of `total` in pieces that differ by one at most.
  void evenly(std::int64_t total, int most, Body body) {
    const std::int64_t pieces = (total + most - 1) / most, larger = total % pieces;
    const auto size = static_cast<int>(total / pieces);
    const std::int64_t middle = larger * (size + 1);
    if (larger > 0)
      b_.for_range(
          b_.index(0), b_.index(middle), size + 1, [&](Value i) { body(i, size + 1); }, true);
    b_.for_range(b_.index(middle), b_.index(total), size, [&](Value i) { body(i, size); }, true);
  }
  void across(Value row, int rows, int most) {
    evenly(s_.n, most, [&](Value column, int columns) { cells(row, column, rows, columns); });
  }

  // c[row … row + rows)[column … column + columns).
  void cells(Value row, Value column, int rows, int columns) {
    const Value a = b_.offset(a_, s_.a_dtype, b_.mul(row, b_.index(s_.a_row)));
    const Value x = b_.offset(x_, s_.b_dtype, b_.mul(column, b_.index(s_.b_column)));
    int streams = 1;
    while (rows * columns * streams < least_sums && streams < 4) streams *= 2;
    const std::int64_t step = static_cast<std::int64_t>(simd_lanes_) * streams,
                       whole = s_.k / step * step;
    const auto cell = [&](int r, int n, int u) { return (r * columns + n) * streams + u; };
    const auto load = [&](Value line, DType d, Value k, Value mask) {
      const Value at = b_.offset(line, d, k);
      return b_.convert(mask ? b_.load_masked(at, d, mask) : b_.load(at, d, simd_lanes_),
                        s_.accumulate);
    };
    const auto multiply = [&](Vec<Value> sums, Value k, int u, Value mask) {
      Vec<Value> right;
      for (int n = 0; n < columns; ++n)
        right.push_back(
            load(b_.offset(x, s_.b_dtype, b_.index(n * s_.b_column)), s_.b_dtype, k, mask));
      for (int r = 0; r < rows; ++r) {
        const Value left =
            load(b_.offset(a, s_.a_dtype, b_.index(r * s_.a_row)), s_.a_dtype, k, mask);
        for (int n = 0; n < columns; ++n)
          sums[cell(r, n, u)] = b_.mul_add(left, right[n], sums[cell(r, n, u)]);
      }
      return sums;
    };
    Vec<Value> acc(rows * columns * streams, b_.integer(s_.accumulate, 0, simd_lanes_));
    if (whole > 0)
      acc = b_.loop(
          b_.index(0), b_.index(whole), step, acc,
          [&](Value k, const Vec<Value>& carried) {
            Vec<Value> sums = carried;
            for (int u = 0; u < streams; ++u)
              sums =
                  multiply(std::move(sums),
                           b_.add(k, b_.index(static_cast<std::int64_t>(u) * simd_lanes_)), u, {});
            return sums;
          },
          true);
    for (std::int64_t k = whole; k < s_.k; k += simd_lanes_) {
      const std::int64_t left = s_.k - k;
      acc = multiply(std::move(acc), b_.index(k), 0,
                     left < simd_lanes_ ? b_.tail_mask(simd_lanes_, b_.index(left)) : Value{});
    }
    for (int r = 0; r < rows; ++r)
      store(row, column, r, columns, [&](int n) {
        Value sum = acc[cell(r, n, 0)];
        for (int u = 1; u < streams; ++u) sum = b_.add(sum, acc[cell(r, n, u)]);
        return sum;
      });
  }

  void store(Value row, Value column, int r, int columns, FunctionRef<Value(int n)> sum) {
    const Value at =
        b_.offset(c_, s_.result, b_.add(b_.mul(b_.add(row, b_.index(r)), b_.index(s_.n)), column));
    for (int n = 0; n < columns;) {
      const int count = std::min(columns - n, simd_lanes_);
      Vec<Value> sums;
      for (int i = 0; i < count; ++i) sums.push_back(sum(n + i));
      const Value side_by_side = b_.convert(sums_of(b_, std::move(sums), simd_lanes_), s_.result),
                  to = b_.offset(at, s_.result, b_.index(n));
      if (side_by_side.simd_lanes == count) b_.store(to, side_by_side);
      else
        b_.store_masked(to, side_by_side, b_.tail_mask(side_by_side.simd_lanes, b_.index(count)));
      n += count;
    }
  }

  IrBuilder& b_;
  const MatmulSpec& s_;
  bool by_columns_;
  int simd_lanes_;
  Value a_, x_, c_;
};

// The small operand is copied so that it runs along k, so many elements of k at a time.
constexpr int transposed_together = 32;

}  // namespace matmul_dots

class Dots final : public Matmul {
 public:
  Dots(const MatmulSpec& s, bool hurry) : s_(s), kernel_(s) {
    transposes_a_ = s.a_column != 1, transposes_b_ = s.b_row != 1;
    if (transposes_a_) kernel_.a_row = s.k, kernel_.a_column = 1;
    if (transposes_b_) kernel_.b_row = 1, kernel_.b_column = s.k;
    if (transposes_a_) turn_ = turn_code(s.a_dtype, s.m, s.a_row, hurry);
    if (transposes_b_) turn_ = turn_code(s.b_dtype, s.n, s.b_column, hurry);
    const matmul_dots::Tile tile = matmul_dots::best_tile(host_target());
    cut_ = {by_columns(s), by_columns(s) ? tile.columns : tile.rows};
    std::string key = "dots";
    const auto add = [&](std::int64_t v) { key += ' ' + std::to_string(v); };
    for (DType d : {s.a_dtype, s.b_dtype, s.accumulate, s.result}) (key += ' ') += vt::name_of(d);
    // Of a single product whose rows are cut the code depends on how many are left over.
    if (s.batch > 1) key += " batch", add(s.m), add(s.a_batch), add(s.b_batch);
    else if (cut_.by_columns) key += " few", add(s.m);
    else key += " rest", add(s.m % tile.rows);
    for (std::int64_t v : {s.n, s.k, kernel_.a_row, kernel_.b_column}) add(v);
    code_ = cached_code(
        key, "vt_matmul",
        [spec = kernel_, columns = cut_.by_columns](IrBuilder& b) {
          matmul_dots::DotsEmitter(b, spec, columns).emit("vt_matmul");
        },
        hurry);
  }

  /// Both must run along k, or the one with few lines must be cheap to turn.
  static bool suits(const MatmulSpec& s) {
    const std::int64_t simd_lanes = host_target().simd_lanes(size_of(s.accumulate)),
                       vectors = s.k / simd_lanes;
    const bool a_along = s.a_column == 1, b_along = s.b_row == 1 && s.b_column != 1;
    if (a_along && b_along && vectors >= 2 && (s.m <= 4 || s.n <= 2)) return true;
    // A batch of matrices times vectors: nothing is used twice, so transposing the matrices would
    // be most of the work.
    if (s.batch > 1 && a_along && b_along && s.m == 1 && s.k >= 4)
      return !plan_register_products(s, host_target());
    if (s.batch > 1 || product_group(s, host_target()) > 1) return false;
    // Adding up SIMD lanes at the end takes as long as some vectors along k.
    if (s.m <= few_rows && b_along && (a_along || s.n >= worth_transposing)) return vectors >= 8;
    if (s.n > few_columns || !a_along || (s.b_row != 1 && s.m < worth_transposing)) return false;
    return s.n <= very_few_columns ? vectors >= 8 : rows_collide(s) && vectors >= 32;
  }

  /// Tiles over rows read as many lines of a at a time as they have rows. Lines whole pages apart
  /// fall into one set of the nearest cache.
  static bool rows_collide(const MatmulSpec& s) {
    constexpr std::int64_t ways = 8, way_bytes = 4 << 10;
    return best_tile(host_target(), s.accumulate).rows > ways &&
           s.a_row * static_cast<std::int64_t>(size_of(s.a_dtype)) % way_bytes == 0;
  }

  PackedOperands pack(const void* a, const void* b) const override {
    PackedOperands made;
    if (a && transposes_a_) made.a = transposed(a, s_.a_dtype, s_.m, s_.a_row, s_.a_column);
    if (b && transposes_b_) made.b = transposed(b, s_.b_dtype, s_.n, s_.b_column, s_.b_row);
    return made;
  }
  std::size_t packed_bytes(bool a, bool b) const override {
    return (a && transposes_a_ ? bytes(s_.m, s_.a_dtype) : 0) +
           (b && transposes_b_ ? bytes(s_.n, s_.b_dtype) : 0);
  }
  std::size_t scratch_bytes(const RowsDone&, bool a_packed, bool b_packed) const override {
    return packed_bytes(!a_packed, !b_packed);
  }

  void run(const void* a, const void* b, void* c, const RowsDone& done,
           const PackedOperands& packed) const override {
    const PackedOperands own = pack(packed.a ? nullptr : a, packed.b ? nullptr : b);
    for (const BufferRef& x : {packed.a, own.a})
      if (x) a = x->data;
    for (const BufferRef& x : {packed.b, own.b})
      if (x) b = x->data;
    auto* f = code_->function<DirectFunction>();
    run_in_ranges(s_, cut_, done,
                  [&](std::int64_t begin, std::int64_t end) { f(a, b, c, begin, end); });
  }
  std::string describe() const override {
    return std::string("dots") + (transposes_a_   ? ", a transposed"
                                  : transposes_b_ ? ", b transposed"
                                                  : "");
  }

 private:
  /// times that the other operand reads what is transposed
  static constexpr std::int64_t worth_transposing = 16;
  /// less than half of a vector: SIMD lanes of tiles over columns would be idle
  static constexpr std::int64_t very_few_columns = 6;
  static bool by_columns(const MatmulSpec& s) {
    return s.batch == 1 && s.m <= few_rows && s.m < s.n;
  }
  std::size_t bytes(std::int64_t lines, DType d) const { return lines * s_.k * size_of(d); }

  static std::shared_ptr<const Code> turn_code(DType d, std::int64_t lines, std::int64_t step,
                                               bool hurry) {
    return pack_code({.from = d,
                      .to = d,
                      .lines = matmul_dots::transposed_together,
                      .k_adjacent = step == 1 && lines >= 16,
                      .whole_vectors = false},
                     hurry);
  }
  BufferRef transposed(const void* x, DType d, std::int64_t lines, std::int64_t line_step,
                       std::int64_t k_step) const {
    const BufferRef copy = allocate(bytes(lines, d), "vt::matmul: operand in the order of k");
    parallel_ranges(
        s_.k,
        std::max<std::int64_t>(transposed_grain / lines, 1) * matmul_dots::transposed_together,
        [&](std::int64_t from, std::int64_t to) {
          for (std::int64_t k = from; k < to; k += matmul_dots::transposed_together)
            turn_->function<PackFunction>()(
                at_element(x, k * k_step, d), at_element(copy->data, k, d), k_step, line_step, s_.k,
                std::min<std::int64_t>(matmul_dots::transposed_together, to - k), lines);
        });
    return copy;
  }
  static constexpr std::int64_t transposed_grain = 1 << 10;

  MatmulSpec s_, kernel_;
  bool transposes_a_ = false, transposes_b_ = false;
  ProductCut cut_;
  std::shared_ptr<const Code> code_, turn_;
};

bool suits_dots(const MatmulSpec& s) { return Dots::suits(s); }
std::shared_ptr<const Matmul> make_dots(const MatmulSpec& s, bool hurry) {
  return std::make_shared<Dots>(s, hurry);
}

}  // namespace vt::detail::cpu

#endif
