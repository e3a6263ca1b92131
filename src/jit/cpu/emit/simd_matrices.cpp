// Loads and stores between row-major matrices in memory and vectors with one element of each
// matrix: square tiles are transposed in registers.
#include "simd_matrices.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu {

// LLVM 19's instruction selection without passes never ends with some shuffles of products with
// splats; it does not see the products if they are in another block.
static void shuffles_begin(IrBuilder& b) { b.begin_block(); }

// Ever larger blocks of pairs are exchanged.
Vec<Value> transposed(IrBuilder& b, Vec<Value> rows, std::int64_t wanted) {
  shuffles_begin(b);
  const int simd_lanes = static_cast<int>(rows.size());
  for (int block = 1; block < simd_lanes; block *= 2) {
    Vec<Value> next(rows.size());
    for (int i = 0; i < simd_lanes; ++i) {
      if (i % block >= wanted && block * 2 >= simd_lanes) continue;
      const int partner = i ^ block;
      const bool upper = (i & block) != 0;
      Vec<int> from;
      for (int l = 0; l < simd_lanes; ++l) {
        const bool own = ((l & block) != 0) == upper;
        from.push_back(own ? l : simd_lanes + (l ^ block));
      }
      next[i] = b.shuffle(rows[i], rows[partner], from);
    }
    rows = std::move(next);
  }
  rows.resize(wanted);
  return rows;
}

namespace rows_in_runs {

std::int64_t smallest_factor(std::int64_t n) {
  for (std::int64_t p = 2; p * p <= n; ++p)
    if (n % p == 0) return p;
  return n;
}

// The vector with element from[l] in SIMD lane l, counted through all `vectors`: two of them to an
// instruction.
Value picked(IrBuilder& b, const Vec<Value>& vectors, const Vec<std::size_t>& from) {
  const std::size_t simd_lanes = from.size();
  Value x = vectors[0];
  for (std::size_t k = 1; k < vectors.size(); ++k) {
    Vec<int> order;
    for (std::size_t l = 0; l < simd_lanes; ++l) {
      const std::size_t of = from[l] / simd_lanes, lane = from[l] % simd_lanes;
      // Lanes of the first vector come to their places in the first step.
      order.push_back(static_cast<int>(of == k ? simd_lanes + lane : of == 0 && k == 1 ? lane : l));
    }
    x = b.shuffle(x, vectors[k], order);
  }
  return x;
}

}  // namespace rows_in_runs

// Every p-th element first, for a prime factor p of the length; these are runs with rows of the
// other factors.
Vec<Value> rows_apart(IrBuilder& b, Vec<Value> run) {
  const std::size_t row = run.size();
  if (row == 1) return run;
  shuffles_begin(b);
  const auto p = static_cast<std::size_t>(
                 rows_in_runs::smallest_factor(static_cast<std::int64_t>(row))),
             simd_lanes = static_cast<std::size_t>(run[0].simd_lanes);
  Vec<Value> elements(row);
  for (std::size_t r = 0; r < p; ++r) {
    Vec<std::size_t> from(simd_lanes);
    for (std::size_t l = 0; l < simd_lanes; ++l) from[l] = l * p + r;
    Vec<Value> part;
    for (auto first = run.begin(); first != run.end(); first += static_cast<std::ptrdiff_t>(p))
      part.push_back(
          rows_in_runs::picked(b, Vec<Value>(first, first + static_cast<std::ptrdiff_t>(p)), from));
    part = rows_apart(b, std::move(part));
    for (std::size_t m = 0; m < part.size(); ++m) elements[r + p * m] = part[m];
  }
  return elements;
}

Vec<Value> rows_together(IrBuilder& b, Vec<Value> elements) {
  const std::size_t row = elements.size();
  if (row == 1) return elements;
  shuffles_begin(b);
  const auto p = static_cast<std::size_t>(
                 rows_in_runs::smallest_factor(static_cast<std::int64_t>(row))),
             simd_lanes = static_cast<std::size_t>(elements[0].simd_lanes), count = row / p;
  Vec<Value> parts;  // p runs, one after the other
  for (std::size_t r = 0; r < p; ++r) {
    Vec<Value> part;
    for (std::size_t n = r; n < row; n += p) part.push_back(elements[n]);
    part = rows_together(b, std::move(part));
    parts.append(part.begin(), part.end());
  }
  Vec<Value> run;
  for (std::size_t q = 0; q < count; ++q) {
    Vec<Value> group;
    for (std::size_t r = 0; r < p; ++r) group.push_back(parts[r * count + q]);
    for (std::size_t t = 0; t < p; ++t) {
      Vec<std::size_t> from(simd_lanes);
      for (std::size_t l = 0; l < simd_lanes; ++l)
        from[l] = (t * simd_lanes + l) % p * simd_lanes + (t * simd_lanes + l) / p;
      run.push_back(rows_in_runs::picked(b, group, from));
    }
  }
  return run;
}

bool rows_go_apart(const Target& target, std::int64_t row, int simd_lanes) {
  if (row <= 4) return true;
  // no instruction there brings any SIMD lanes of two vectors together
  if (!target.masked) return false;
  std::int64_t shuffles = 0, squares = 0;
  for (std::int64_t left = row; left > 1; left /= rows_in_runs::smallest_factor(left))
    shuffles += row * (rows_in_runs::smallest_factor(left) - 1);
  int levels = 0;
  while ((1 << levels) < simd_lanes) ++levels;
  for (std::int64_t done = 0; done < row; done += simd_lanes)
    // the first of them loads, or stores
    squares += simd_lanes * levels + std::min<std::int64_t>(simd_lanes, 2 * (row - done));
  return shuffles <= squares;
}

SimdMatrix::SimdMatrix(IrBuilder& b, DType d, int simd_lanes, std::int64_t rows,
                       std::int64_t columns, bool in_registers)
    : b_(b),
      dtype_(d),
      simd_lanes_(simd_lanes),
      rows_(rows),
      columns_(columns),
      in_registers_(in_registers) {
  if (in_registers) elements_.assign(rows * columns, b.integer(d, 0, simd_lanes));
  else memory_ = b.stack_array(d, rows * columns * simd_lanes);
}

Value SimdMatrix::place(At row, At column) {
  const Value i =
      row.counted ? b_.mul(row.counted, b_.index(columns_)) : b_.index(row.known * columns_);
  const Value element =
      column.counted ? b_.add(i, column.counted) : b_.add(i, b_.index(column.known));
  return b_.offset(memory_, dtype_, b_.mul(element, b_.index(simd_lanes_)));
}

Value SimdMatrix::get(At row, At column) {
  if (in_registers_) return elements_[row.known * columns_ + column.known];
  return b_.load(place(row, column), dtype_, simd_lanes_,
                 static_cast<int>(size_of(dtype_)) * simd_lanes_);
}
void SimdMatrix::set(At row, At column, Value x) {
  if (in_registers_) elements_[row.known * columns_ + column.known] = x;
  else b_.store(place(row, column), x, static_cast<int>(size_of(dtype_)) * simd_lanes_);
}

// An element of a SIMD lane at a time: as many accesses for each column, however many rows there
// are.
void SimdMatrix::exchange(std::int64_t row, Value others, std::int64_t left) {
  Vec<Value> starts;
  for (int l = 0; l < simd_lanes_; ++l) {
    const Value other = b_.convert(b_.extract(others, l), DType::i64);
    starts.push_back(b_.offset(
        memory_, dtype_, b_.add(b_.mul(other, b_.index(columns_ * simd_lanes_)), b_.index(l))));
  }
  for (std::int64_t j = left; j < columns_; ++j) {
    const Value old = get(row, j), column = b_.index(j * simd_lanes_);
    Value moved = old;
    for (int l = 0; l < simd_lanes_; ++l)
      moved = b_.insert(moved, l, b_.load(b_.offset(starts[l], dtype_, column), dtype_));
    for (int l = 0; l < simd_lanes_; ++l)
      b_.store(b_.offset(starts[l], dtype_, column), b_.extract(old, l));
    set(row, j, moved);
  }
}

void SimdMatrix::for_rows(std::int64_t from, std::int64_t to, FunctionRef<void(At)> body) {
  if (!in_registers_ && from < to)
    return b_.for_range(b_.index(from), b_.index(to), 1, [&](Value i) { body(i); }, true);
  for (std::int64_t i = from; i < to; ++i) body(i);
}

// `size` elements at a time; the last ones in a tile of their own.
void SimdMatrix::for_tiles(std::int64_t size, FunctionRef<void(At, std::int64_t)> body) {
  const std::int64_t all = rows_ * columns_, whole = all / size * size;
  if (!in_registers_ && whole > size)
    b_.for_range(b_.index(0), b_.index(whole), size, [&](Value from) { body(from, size); }, true);
  else
    for (std::int64_t from = 0; from < whole; from += size) body(from, size);
  if (whole < all) body(whole, all - whole);
}

void SimdMatrix::load(Value array, Value first) {
  const std::int64_t all = rows_ * columns_;
  if (in_registers_ && simd_lanes_ == 1) {
    const Value start = b_.offset(array, dtype_, b_.mul(first, b_.index(all)));
    for (std::int64_t e = 0; e < all; ++e)
      elements_[e] = b_.load(b_.offset(start, dtype_, b_.index(e)), dtype_);
    return;
  }
  if (in_registers_ && all <= 4) {
    // Few elements: all matrices at once, and each element's picked out.
    const Value block = b_.load(b_.offset(array, dtype_, b_.mul(first, b_.index(all))), dtype_,
                                static_cast<int>(all) * simd_lanes_);
    for (std::int64_t e = 0; e < all; ++e) {
      Vec<int> from;
      for (int l = 0; l < simd_lanes_; ++l) from.push_back(static_cast<int>(e + all * l));
      elements_[e] = b_.shuffle(block, block, from);
    }
    return;
  }
  for_tiles(simd_lanes_,
            [&](At from, std::int64_t count) { load_tile(array, first, from, count); });
}

void SimdMatrix::store(Value array, Value first, bool past) {
  const std::int64_t all = rows_ * columns_;
  if (in_registers_ && simd_lanes_ == 1) {
    const Value start = b_.offset(array, dtype_, b_.mul(first, b_.index(all)));
    for (std::int64_t e = 0; e < all; ++e)
      b_.store(b_.offset(start, dtype_, b_.index(e)), elements_[e]);
    return;
  }
  constexpr std::int64_t line = 64;
  if (past)  // whole lines of each matrix, one after the other
    return for_tiles(
        line / static_cast<std::int64_t>(size_of(dtype_)),
        [&](At from, std::int64_t count) { store_tile(array, first, from, count, true); });
  if (in_registers_ && all <= 4) {
    Value joined = elements_[0];
    for (std::int64_t e = 1; e < all; ++e) joined = b_.concat_simd_lanes(joined, elements_[e]);
    Vec<int> from;
    for (int l = 0; l < simd_lanes_; ++l)
      for (std::int64_t e = 0; e < all; ++e) from.push_back(static_cast<int>(e * simd_lanes_ + l));
    b_.store(b_.offset(array, dtype_, b_.mul(first, b_.index(all))),
             b_.shuffle(joined, joined, from));
    return;
  }
  for_tiles(simd_lanes_,
            [&](At from, std::int64_t count) { store_tile(array, first, from, count, false); });
}

void SimdMatrix::load_tile(Value array, Value first, At from, std::int64_t count) {
  const Value element = from.counted ? from.counted : b_.index(from.known);
  Vec<Value> rows;
  for (int l = 0; l < simd_lanes_; ++l) {
    const Value matrix = b_.mul(b_.add(first, b_.index(l)), b_.index(rows_ * columns_));
    const Value at = b_.offset(array, dtype_, b_.add(matrix, element));
    rows.push_back(count == simd_lanes_
                       ? b_.load(at, dtype_, simd_lanes_)
                       : b_.load_masked(at, dtype_, b_.tail_mask(simd_lanes_, b_.index(count))));
  }
  rows = transposed(b_, std::move(rows), count);
  for (std::int64_t e = 0; e < count; ++e) {
    if (in_registers_) elements_[from.known + e] = rows[e];
    else
      b_.store(
          b_.offset(memory_, dtype_, b_.mul(b_.add(element, b_.index(e)), b_.index(simd_lanes_))),
          rows[e], static_cast<int>(size_of(dtype_)) * simd_lanes_);
  }
}

void SimdMatrix::store_tile(Value array, Value first, At from, std::int64_t count, bool past) {
  const Value element = from.counted ? from.counted : b_.index(from.known);
  const int bytes = static_cast<int>(size_of(dtype_)) * simd_lanes_;
  Vec<Vec<Value>> squares;
  for (std::int64_t done = 0; done < count; done += simd_lanes_) {
    Vec<Value> rows;
    for (std::int64_t e = done; e < done + simd_lanes_; ++e) {
      if (e >= count) rows.push_back(rows[0]);  // never stored
      else if (in_registers_) rows.push_back(elements_[from.known + e]);
      else
        rows.push_back(b_.load(
            b_.offset(memory_, dtype_, b_.mul(b_.add(element, b_.index(e)), b_.index(simd_lanes_))),
            dtype_, simd_lanes_, bytes));
    }
    squares.push_back(transposed(b_, std::move(rows), simd_lanes_));
  }
  for (int l = 0; l < simd_lanes_; ++l) {
    const Value matrix = b_.mul(b_.add(first, b_.index(l)), b_.index(rows_ * columns_));
    std::int64_t done = 0;
    for (const Vec<Value>& square : squares) {
      const Value at = b_.offset(array, dtype_, b_.add(matrix, b_.add(element, b_.index(done))));
      const Value x = square[l];
      if (past) b_.store_streaming(at, x, bytes);
      else if (count - done >= simd_lanes_) b_.store(at, x);
      else b_.store_masked(at, x, b_.tail_mask(simd_lanes_, b_.index(count - done)));
      done += simd_lanes_;
    }
  }
}

}  // namespace vt::detail::cpu

#endif
