// The code of matrix products that read their operands where they are,
// in tiles over rows and columns.
#include "matmul_emit.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu {

namespace matmul_tiles {

// Tiles of one product at pointers a, b, c. `rows_from` … `rows_to` as Values (m unknown) or the
// constant m.
class DirectProduct {
 public:
  DirectProduct(IrBuilder& b, const MatmulSpec& s, TileShape shape) : b_(b), s_(s), shape_(shape) {}

  /// Where the next product's operands and result begin: its lines are fetched while this one is
  /// computed.
  void fetch_ahead(Value a, Value b, Value c) {
    const auto bytes = [](std::int64_t elements, DType d) {
      return elements * static_cast<std::int64_t>(size_of(d));
    };
    ahead_ = {{a, bytes(s_.m * s_.k, s_.a_dtype), false},
              {b, bytes(s_.k * s_.n, s_.b_dtype), false},
              {c, bytes(s_.m * s_.n, s_.result), true}};
  }

  void all_rows(Value a, Value b, Value c) {
    // m is known: cut it into tiles of equal height, so that no short tile is left over.
    const std::int64_t height = shape_.rows, count = (s_.m + height - 1) / height;
    if (count == 0) return;
    const std::int64_t even = (s_.m + count - 1) / count;
    const std::int64_t whole = s_.m / even;
    row_loop(a, b, c, b_.index(0), b_.index(whole * even), static_cast<int>(even), whole == 1);
    if (const std::int64_t rest = s_.m - whole * even; rest > 0)
      columns(row_pointer(a, b_.index(whole * even)), b, c_pointer(c, b_.index(whole * even)),
              b_.index(whole * even), static_cast<int>(rest));
  }

  void some_rows(Value a, Value b, Value c, Value from, Value to) {
    Value at = from;
    for (int height : {shape_.rows, std::max(1, shape_.rows / 3), 1}) {
      const Value span = b_.sub(to, at);
      const Value whole = b_.mul(b_.div(span, b_.index(height)), b_.index(height));
      const Value end = b_.add(at, whole);
      row_loop(a, b, c, at, end, height, false);
      at = end;
      if (height == 1) break;
    }
  }

  // All rows, which are few, of some columns: whole tiles, but for the last columns of all.
  void some_columns(Value a, Value b, Value c, Value from, Value to) {
    in_columns(from, to, [&](Value column, std::int64_t wide) {
      for (std::int64_t row = 0; row < s_.m; row += shape_.rows) {
        const Value at = b_.index(row);
        one_tile(b_.offset(b, s_.b_dtype, b_.mul(column, b_.index(s_.b_column))),
                 row_pointer(a, at), b_.offset(c_pointer(c, at), s_.result, column), at, column,
                 static_cast<int>(std::min<std::int64_t>(shape_.rows, s_.m - row)), wide);
      }
    });
  }

  // Each panel of b stays in the nearest cache while the rows go by. Rows are cut at multiples of a
  // tile's, but for the last ones of all, or columns at multiples of a panel's.
  void panels(Value a, Value b, Value c, Value from, Value to, bool by_columns) {
    const int rows = shape_.rows, last = static_cast<int>(s_.m % rows);
    const std::int64_t width = shape_.columns(), whole = s_.n / width * width;
    const Value first = by_columns ? b_.index(0) : from, end = by_columns ? b_.index(s_.m) : to;
    const Value even =
        b_.add(first, b_.mul(b_.div(b_.sub(end, first), b_.index(rows)), b_.index(rows)));
    const auto panel = [&](Value column, std::int64_t wide) {
      const Value own = b_.offset(b, s_.b_dtype, b_.mul(column, b_.index(s_.k)));
      const auto tile = [&](Value row, int height) {
        one_tile(own, row_pointer(a, row), b_.offset(c_pointer(c, row), s_.result, column), row,
                 column, height, wide);
      };
      b_.for_range(first, even, rows, [&](Value row) { tile(row, rows); });
      if (last > 0) b_.if_then(b_.compare(Compare::lt, even, end), [&] { tile(even, last); });
    };
    if (by_columns) return in_columns(from, to, panel);
    b_.for_range(b_.index(0), b_.index(whole), width, [&](Value column) { panel(column, width); });
    if (whole < s_.n) panel(b_.index(whole), s_.n - whole);
  }

  // The same for any number of rows. Those left over by whole tiles are one tile, so that b is read
  // once for them.
  void any_rows(Value a, Value b, Value c, Value from, Value to) {
    const std::int64_t width = shape_.columns(), whole = s_.n / width * width;
    const Value span = b_.sub(to, from), height = b_.index(shape_.rows);
    const Value even = b_.add(from, b_.mul(b_.div(span, height), height));
    const Value rest = b_.sub(to, even);
    const auto panel = [&](Value column, std::int64_t wide) {
      const Value own = b_.offset(b, s_.b_dtype, b_.mul(column, b_.index(s_.k)));
      const auto tile = [&](Value row, int rows) {
        one_tile(own, row_pointer(a, row), b_.offset(c_pointer(c, row), s_.result, column), row,
                 column, rows, wide);
      };
      b_.for_range(from, even, shape_.rows, [&](Value row) { tile(row, shape_.rows); });
      for (int rows = 1; rows < shape_.rows; ++rows)
        b_.if_then(b_.compare(Compare::eq, rest, b_.index(rows)), [&] { tile(even, rows); });
    };
    b_.for_range(b_.index(0), b_.index(whole), width, [&](Value column) { panel(column, width); });
    if (whole < s_.n) panel(b_.index(whole), s_.n - whole);
  }

 private:
  Value row_pointer(Value a, Value row) {
    return b_.offset(a, s_.a_dtype, b_.mul(row, b_.index(s_.a_row)));
  }
  Value c_pointer(Value c, Value row) {
    return b_.offset(c, s_.result, b_.mul(row, b_.index(s_.n)));
  }

  // Columns [from, to) in pieces as wide as a tile; only the last ones of all may be fewer.
  void in_columns(Value from, Value to, FunctionRef<void(Value column, std::int64_t wide)> piece) {
    const std::int64_t width = shape_.columns(), whole = s_.n / width * width;
    b_.for_range(from, b_.min(to, b_.index(whole)), width,
                 [&](Value column) { piece(column, width); });
    if (whole < s_.n)
      b_.if_then(b_.compare(Compare::gt, to, b_.index(whole)),
                 [&] { piece(b_.index(whole), s_.n - whole); });
  }

  void row_loop(Value a, Value b, Value c, Value from, Value to, int height, bool once) {
    if (once) return columns(a, b, c, from, height);
    b_.for_range(from, to, height, [&](Value row) {
      columns(row_pointer(a, row), b, c_pointer(c, row), row, height);
    });
  }

  void columns(Value a, Value b, Value c, Value row, int rows) {
    // Few rows leave registers free: widen the tile so that enough independent sums are in flight.
    int vectors = shape_.vectors;
    while (rows * vectors * 2 <= shape_.rows * shape_.vectors && vectors < 8) vectors *= 2;
    const std::int64_t width = static_cast<std::int64_t>(vectors) * shape_.simd_lanes;
    const std::int64_t whole = s_.n / width;
    const auto body = [&](Value column, std::int64_t wide) {
      one_tile(b_.offset(b, s_.b_dtype, b_.mul(column, b_.index(s_.b_column))), a,
               b_.offset(c, s_.result, column), row, column, rows, wide);
    };
    if (whole == 1) body(b_.index(0), width);
    else if (whole > 1)
      b_.for_range(
          b_.index(0), b_.index(whole * width), width, [&](Value column) { body(column, width); },
          true);
    if (const std::int64_t rest = s_.n - whole * width; rest > 0)
      body(b_.index(whole * width), rest);
  }

  // What one step of a tile fetches, so that all tiles together fetch every line.
  struct Stream {
    Value next;
    std::int64_t step;
    bool write;
  };
  Vec<Stream> streams_for(Value row, Value column, int rows, std::int64_t wide) const {
    Vec<Stream> streams;
    const auto share = [](std::int64_t bytes, std::int64_t of) { return (bytes + of - 1) / of; };
    for (const Ahead& x : ahead_) {
      const Value at = b_.add(b_.mul(row, b_.index(share(x.bytes, s_.m))),
                              b_.mul(column, b_.index(share(x.bytes * rows, s_.m * s_.n))));
      streams.push_back({b_.offset_bytes(x.start, at),
                         share(x.bytes * rows * wide, s_.m * s_.n * s_.k), x.write});
    }
    return streams;
  }

  void one_tile(Value b, Value a, Value c, Value row, Value column, int rows, std::int64_t wide) {
    int simd_lanes = shape_.simd_lanes;
    // A product narrower than a vector takes a narrower vector.
    while (simd_lanes > 1 && wide <= simd_lanes / 2) simd_lanes /= 2;
    const int vectors = static_cast<int>((wide + simd_lanes - 1) / simd_lanes);
    const TileShape tile{rows, vectors, simd_lanes};
    const std::int64_t rest = wide - static_cast<std::int64_t>(vectors - 1) * simd_lanes;
    const bool partial = rest != simd_lanes;
    const Value mask = partial ? b_.tail_mask(simd_lanes, b_.index(rest)) : Value{};
    const Vec<Stream> streams = streams_for(row, column, rows, wide);
    const Vec<Value> acc = sum_tile(
        b_, tile, s_.accumulate, b_.index(s_.k), s_.k,
        [&](int r, Value k) {
          return b_.load(b_.offset(b_.offset(a, s_.a_dtype, b_.mul(k, b_.index(s_.a_column))),
                                   s_.a_dtype, b_.index(r * s_.a_row)),
                         s_.a_dtype);
        },
        [&](int v, Value k) {
          if (v == 0)
            for (const Stream& x : streams)
              b_.fetch_ahead(b_.offset_bytes(x.next, b_.mul(k, b_.index(x.step))),
                             {x.write, false});
          const Value at =
              b_.offset(b_.offset(b, s_.b_dtype, b_.mul(k, b_.index(s_.b_row))), s_.b_dtype,
                        b_.index(static_cast<std::int64_t>(v) * simd_lanes));
          return partial && v == vectors - 1 ? b_.load_masked(at, s_.b_dtype, mask)
                                             : b_.load(at, s_.b_dtype, simd_lanes);
        });
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) {
        const Value at =
            b_.offset(c, s_.result, b_.index(r * s_.n + static_cast<std::int64_t>(v) * simd_lanes));
        const Value x = b_.convert(acc[r * vectors + v], s_.result);
        if (partial && v == vectors - 1) b_.store_masked(at, x, mask);
        else b_.store(at, x);
      }
  }

  struct Ahead {
    Value start;
    std::int64_t bytes;
    bool write;
  };

  IrBuilder& b_;
  const MatmulSpec& s_;
  TileShape shape_;
  Vec<Ahead> ahead_;
};

}  // namespace matmul_tiles

// Bytes of a product from which on others are fetched while it is computed, and how far ahead: one
// of 16 × 16 f64 takes no longer than memory does.
constexpr std::int64_t worth_fetching = 4 << 10, bytes_ahead = 8 << 10;

void emit_direct(IrBuilder& b, const std::string& name, const MatmulSpec& s, TileShape shape,
                 bool by_columns) {
  b.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true},
                          Param::of(i64), Param::of(i64)});
  const Value a = b.arg(0), x = b.arg(1), c = b.arg(2), begin = b.arg(3), end = b.arg(4);
  matmul_tiles::DirectProduct product(b, s, shape);
  if (by_columns) {
    product.some_columns(a, x, c, begin, end);
  } else if (s.batch == 1) {
    product.some_rows(a, x, c, begin, end);
  } else {
    const auto a_of = [&](Value i) { return b.offset(a, s.a_dtype, b.mul(i, b.index(s.a_batch))); };
    const auto b_of = [&](Value i) { return b.offset(x, s.b_dtype, b.mul(i, b.index(s.b_batch))); };
    const auto c_of = [&](Value i) { return b.offset(c, s.result, b.mul(i, b.index(s.m * s.n))); };
    // Small products come fast enough from afar by themselves.
    const std::int64_t bytes =
        (s.m * s.k + s.k * s.n + s.m * s.n) * static_cast<std::int64_t>(size_of(s.accumulate));
    b.for_range(begin, end, 1, [&](Value i) {
      const Value next = b.add(i, b.index((bytes_ahead + bytes - 1) / bytes));
      if (bytes >= worth_fetching) product.fetch_ahead(a_of(next), b_of(next), c_of(next));
      product.all_rows(a_of(i), b_of(i), c_of(i));
    });
  }
  b.end_function();
}

void emit_panels(IrBuilder& b, const std::string& name, const MatmulSpec& s, TileShape shape,
                 bool by_columns) {
  b.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true},
                          Param::of(i64), Param::of(i64)});
  matmul_tiles::DirectProduct(b, s, shape)
      .panels(b.arg(0), b.arg(1), b.arg(2), b.arg(3), b.arg(4), by_columns);
  b.end_function();
}

void emit_any_rows(IrBuilder& b, const std::string& name, const MatmulSpec& s, TileShape shape) {
  b.begin_function(name, {Param::ptr(), Param::ptr(), Param{.pointer = true, .noalias = true},
                          Param::of(i64), Param::of(i64)});
  matmul_tiles::DirectProduct(b, s, shape)
      .any_rows(b.arg(0), b.arg(1), b.arg(2), b.arg(3), b.arg(4));
  b.end_function();
}

}  // namespace vt::detail::cpu

#endif
