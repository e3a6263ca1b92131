// Register tiles of matrix products: the sums that stay in registers while k runs, and the tile
// function of packed operands.
#include <vt/detail/small_vec.hpp>

#include "matmul_tile.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu {

namespace matmul_tiles {

constexpr int k_unroll = 4;

Vec<Value> one_step(IrBuilder& b, const TileShape& t, DType accumulate, const Vec<Value>& acc,
                    const LoadA& load_a, const LoadB& load_b, Value k) {
  const auto factor = [&](Value x) { return t.group > 1 ? x : b.convert(x, accumulate); };
  Vec<Value> next(acc.size());
  Vec<Value> column(t.vectors);
  for (int v = 0; v < t.vectors; ++v) column[v] = factor(load_b(v, k));
  for (int r = 0; r < t.rows; ++r) {
    const Value x = b.splat(factor(load_a(r, k)), t.simd_lanes);
    for (int v = 0; v < t.vectors; ++v) {
      const std::size_t i = r * t.vectors + v;
      const Value y = column[v];
      next[i] = t.group > 1 ? b.dot_groups(acc[i], x, y) : b.mul_add(x, y, acc[i]);
    }
  }
  return next;
}

// Σ over k in [0, depth) for a whole tile; `constant_depth` ≥ 0 when it is known.
Vec<Value> sum_tile(IrBuilder& b, const TileShape& t, DType accumulate, Value depth,
                    std::int64_t constant_depth, const LoadA& load_a, const LoadB& load_b,
                    Vec<Value> start) {
  Vec<Value> acc = std::move(start);
  acc.resize(t.rows * t.vectors, b.integer(accumulate, 0, t.simd_lanes));
  if (constant_depth >= 0 && constant_depth * t.rows * t.vectors <= 256) {
    for (std::int64_t k = 0; k < constant_depth; ++k)
      acc = one_step(b, t, accumulate, acc, load_a, load_b, b.index(k));
    return acc;
  }
  // Long tiles fill the pipeline by themselves; short ones need several steps in flight per
  // iteration.
  const int unroll = t.rows * t.vectors >= 24 ? 2 : k_unroll;
  const Value whole = constant_depth >= 0
                          ? b.index(constant_depth / unroll * unroll)
                          : b.bit_and(depth, b.index(-static_cast<std::int64_t>(unroll)));
  acc = b.loop(b.index(0), whole, unroll, acc, [&](Value k, const Vec<Value>& carried) {
    Vec<Value> sums = carried;
    for (int u = 0; u < unroll; ++u)
      sums = one_step(b, t, accumulate, sums, load_a, load_b, b.add(k, b.index(u)));
    return sums;
  });
  if (constant_depth >= 0) {
    for (std::int64_t k = constant_depth / unroll * unroll; k < constant_depth; ++k)
      acc = one_step(b, t, accumulate, acc, load_a, load_b, b.index(k));
    return acc;
  }
  return b.loop(whole, depth, 1, acc, [&](Value k, const Vec<Value>& carried) {
    return one_step(b, t, accumulate, carried, load_a, load_b, k);
  });
}

}  // namespace matmul_tiles

TileShape best_tile(const Target& target, DType accumulate) {
  const int simd_lanes = target.simd_lanes(size_of(accumulate));
  if (target.vector_registers >= 32) return {14, 2, simd_lanes};
  if (target.fma) return {6, 2, simd_lanes};
  return {4, 2, simd_lanes};
}

void emit_packed_tile(IrBuilder& b, const std::string& name, DType sum, DType result, int rows,
                      const TileShape& shape, bool whole_panels, bool one_pass) {
  b.begin_function(name, {Param::of(i64), Param::ptr(), Param::ptr(), Param::ptr(), Param::of(i64),
                          Param::of(i64), Param::ptr(), Param::of(i64), Param::of(i64),
                          Param::ptr(), Param::of(i64)});
  const Value depth = b.arg(0), a = b.arg(1), panel = b.arg(2), c = b.arg(3), c_row = b.arg(4),
              columns = b.arg(5), sums = b.arg(6), sums_row = b.arg(7), passes = b.arg(8),
              soon = b.arg(9), soon_step = b.arg(10);
  const auto at = [&](Value base, Value row_step, DType d, int r, int v) {
    return b.offset(b.offset(base, d, b.mul(row_step, b.index(r))), d,
                    b.index(v * shape.simd_lanes));
  };
  // The sums of earlier passes were written a whole block ago: fetched now, they are there when k
  // is through.
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < shape.vectors; ++v)
      b.fetch_ahead(at(sums, sums_row, sum, r, v), {.write = true});
  // Bytes of a are 128 too many: a row of such bytes more tells what that makes.
  const bool shifted = shape.group == 4;
  TileShape tile = shape;
  tile.rows = rows + shifted;
  const DType factors = shape.group > 1 ? i32 : sum;
  const int vector_bytes = static_cast<int>(shape.simd_lanes * size_of(sum));
  Vec<Value> acc = matmul_tiles::sum_tile(
      b, tile, sum, depth, -1,
      [&](int r, Value k) {
        if (r == rows) return b.integer(i32, -0x7f7f7f80);
        return b.load(
            b.offset(b.offset(a, sum, b.mul(k, b.index(shape.padded_rows()))), sum, b.index(r)),
            factors);
      },
      [&](int v, Value k) {
        if (v == 0) b.fetch_ahead(b.offset_bytes(soon, b.mul(k, soon_step)), {.near = false});
        return b.load(b.offset(b.offset(panel, sum, b.mul(k, b.index(shape.columns()))), sum,
                               b.index(v * shape.simd_lanes)),
                      factors, shape.simd_lanes, vector_bytes);
      });
  for (std::size_t i = 0; shifted && i < static_cast<std::size_t>(rows * shape.vectors); ++i)
    acc[i] = b.sub(acc[i], acc[static_cast<std::size_t>(rows * shape.vectors) +
                               i % static_cast<std::size_t>(shape.vectors)]);
  const auto each = [&](bool whole, FunctionRef<void(int r, int v, Value mask, Value x)> f) {
    for (int v = 0; v < shape.vectors; ++v) {
      const Value mask =
          whole ? Value{}
                : b.tail_mask(shape.simd_lanes, b.sub(columns, b.index(v * shape.simd_lanes)));
      for (int r = 0; r < rows; ++r) f(r, v, mask, acc[r * shape.vectors + v]);
    }
  };
  const auto write = [&](bool whole, bool adding, bool last) {
    each(whole, [&](int r, int v, Value mask, Value x) {
      const Value earlier = at(sums, sums_row, sum, r, v);
      if (adding)
        x = b.add(mask ? b.load_masked(earlier, sum, mask) : b.load(earlier, sum, shape.simd_lanes),
                  x);
      const Value to = last ? at(c, c_row, result, r, v) : earlier;
      if (last) x = b.convert(x, result);
      if (mask) b.store_masked(to, x, mask);
      else b.store(to, x);
    });
  };
  const auto choose = [&](Value condition, FunctionRef<void(bool)> f) {
    b.if_else(
        condition,
        [&] {
          f(true);
          return Vec<Value>{};
        },
        [&] {
          f(false);
          return Vec<Value>{};
        });
  };
  const auto bit = [&](std::int64_t which) {
    return b.compare(Compare::ne, b.bit_and(passes, b.index(which)), b.index(0));
  };
  const auto either = [&](bool whole) {
    if (one_pass) return write(whole, false, sum != result);
    choose(bit(add_earlier_pass), [&](bool adding) {
      if (sum == result) return write(whole, adding, false);
      choose(bit(last_pass), [&](bool last) { write(whole, adding, last); });
    });
  };
  if (whole_panels) either(true);
  else choose(b.compare(Compare::ge, columns, b.index(shape.columns())), either);
  b.end_function();
}

}  // namespace vt::detail::cpu

#endif
