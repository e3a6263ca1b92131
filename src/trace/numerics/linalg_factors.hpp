// Factorisations of one matrix in memory, for floats, doubles and complex numbers: in panels, so
// that nearly all work is products.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>
#include <type_traits>

#include <vt/detail/small_vec.hpp>

#include "../base/recycled.hpp"
#include "simd_rows.hpp"

namespace vt::detail::linalg_kernels {

using simd_rows::add_rows, simd_rows::add_to, simd_rows::add_to_rows, simd_rows::conj,
    simd_rows::dot, simd_rows::imag, simd_rows::Index, simd_rows::multiply_add, simd_rows::real,
    simd_rows::row_dots, simd_rows::rows_of, simd_rows::size, simd_rows::square, simd_rows::View;
using simd_rows::Complex;

constexpr double nan = std::numeric_limits<double>::quiet_NaN(),
                 infinity = std::numeric_limits<double>::infinity();
constexpr Index panel = 16;  ///< columns that are worked on one by one
template <class T>
using Real = std::conditional_t<std::is_same_v<T, float>, float, double>;
template <class T>
inline constexpr double epsilon = std::numeric_limits<Real<T>>::epsilon();

template <class T>
RecycledVec<T> zeros(Index n) {
  return RecycledVec<T>(static_cast<std::size_t>(n) + 1);
}
template <class T>
void scale(T* x, double a, Index n) {
  if (a != 1) simd_rows::multiply(x, T(a), n);
}
template <class T>
void transpose(const T* a, Index m, Index n, T* t) {
  simd_rows::turn(a, n, m, n, t, m);
}

/// The power of two that brings the largest element near 1, so that squares neither overflow nor
/// vanish; 0 if an element is not finite.
template <class T>
double scale_of(const T* a, Index n) {
  using R = Real<T>;
  constexpr int most_exponent = std::numeric_limits<R>::max_exponent - 24;
  const R most = simd_rows::extent(reinterpret_cast<const R*>(a),
                                   n * static_cast<Index>(sizeof(T) / sizeof(R)));
  if (most == 0) return 1;
  if (__builtin_isnan(most)) return 0;
  int exponent = 0;
  std::frexp(most, &exponent);
  return std::ldexp(1.0, std::clamp(-exponent, -most_exponent, most_exponent));
}
/// Is a number of this size, as largest of a matrix, so near overflow or underflow that what is
/// computed from it may not be?
template <class R>
bool extreme(double size) {
  using Limits = std::numeric_limits<R>;
  return !(size >= Limits::min() / square(Limits::epsilon()) &&
           size <= Limits::max() * square(Limits::epsilon()));
}

inline bool finite(double x) { return __builtin_isfinite(x); }
inline bool finite(Complex x) { return __builtin_isfinite(x.re) && __builtin_isfinite(x.im); }

/// b ← x with op(a) x = b; b is n × k, rows of a are `width` apart. `adjoint` is the conjugate
/// transpose.
template <class T>
struct Triangle {
  const T* a;
  Index width;
  bool lower, transposed, unit, conjugate;
  T at(Index i, Index j) const {
    const T x = transposed ? a[j * width + i] : a[i * width + j];
    return conjugate ? conj(x) : x;
  }
  View<T> block(Index i, Index j) const {
    return transposed ? View<T>{a + j * width + i, 1, width, conjugate}
                      : View<T>{a + i * width + j, width, 1, conjugate};
  }
  bool forward() const { return lower != transposed; }
};
/// Of one right side: four unknowns at a time, along the rows of a in memory.
template <class T>
void triangular_solve_one(const Triangle<T>& t, Index n, T* b) {
  const bool forward = t.forward();
  for (Index s = 0; s < n; s += 4) {
    const Index count = std::min<Index>(4, n - s), from = forward ? s : n - s - count,
                to = from + count;
    T four[4];
    if (!t.transposed) {
      const Index known = forward ? 0 : to;
      row_dots(t.a + from * t.width + known, t.width, count, b + known, forward ? from : n - to,
               four);
      for (Index i = 0; i < count; ++i) b[from + i] = b[from + i] - four[i];
    }
    for (Index r = 0; r < count; ++r) {
      const Index i = forward ? from + r : to - 1 - r;
      if (!t.unit) b[i] = b[i] / t.at(i, i);
      for (Index j = forward ? i + 1 : from; j < (forward ? to : i); ++j)
        b[j] = b[j] - t.at(j, i) * b[i];
    }
    if (!t.transposed) continue;
    for (Index i = 0; i < count; ++i) four[i] = -b[from + i];
    const Index rest = forward ? to : 0;
    add_rows(b + rest, four, t.a + from * t.width + rest, t.width, count, forward ? n - to : from);
  }
}
/// Rows begin … begin + n − 1 of a, whose right sides' first row is b.
template <class T>
void triangular_solve(const Triangle<T>& t, Index begin, Index n, T* b, Index step, Index k) {
  constexpr Index whole = 128;
  const bool forward = t.forward();
  if (k == 1 && step == 1 && begin == 0 && !t.conjugate) return triangular_solve_one(t, n, b);
  if (n > whole) {
    const Index half = n / 8 * 4, first = forward ? 0 : half, second = forward ? half : 0,
                length = forward ? half : n - half;
    triangular_solve(t, begin + first, length, b + first * step, step, k);
    multiply_add(b + second * step, step, -1, t.block(begin + second, begin + first),
                 View<T>{b + first * step, step, 1}, n - length, k, length);
    return triangular_solve(t, begin + second, n - length, b + second * step, step, k);
  }
  for (Index s = 0; s < n; s += 4) {
    const Index rows = std::min<Index>(4, n - s), from = forward ? s : n - s - rows,
                known = forward ? 0 : n - s;
    multiply_add(b + from * step, step, -1, t.block(begin + from, begin + known),
                 View<T>{b + known * step, step, 1}, rows, k, s);
    T square[16];
    bool divides = false;  // where a diagonal element has no reciprocal that is a number
    for (Index r = 0; r < rows; ++r) {
      const Index i = forward ? from + r : from + rows - 1 - r;
      for (Index q = 0; q < r; ++q)
        square[4 * r + q] = t.at(begin + i, begin + (forward ? from + q : from + rows - 1 - q));
      square[5 * r] = t.unit ? T(1) : T(1) / t.at(begin + i, begin + i);
      divides = divides || !finite(square[5 * r]);
    }
    T* first = b + (forward ? from : from + rows - 1) * step;
    const Index apart = forward ? step : -step;
    if (!divides) {
      simd_rows::substitute(square, rows, first, apart, k);
      continue;
    }
    for (Index r = 0; r < rows; ++r) {
      const Index i = begin + (forward ? from + r : from + rows - 1 - r);
      for (Index q = 0; q < r; ++q)
        add_to(first + r * apart, -square[4 * r + q], first + q * apart, k);
      if (!t.unit) simd_rows::divide(first + r * apart, t.at(i, i), k);
    }
  }
}

/// Rows begin … end − 1 of U, UᴴU = a, in the place of a's upper triangle (m to a row); false if it
/// is not positive definite.
template <class T>
bool cholesky_rows(T* a, Index m, Index begin, Index end) {
  for (Index j = begin; j < end; j += 4) {
    const Index rows = std::min<Index>(4, end - j);
    T* corner = a + j * m + j;
    multiply_add(corner, m, -1, simd_rows::adjoint<T>(a + begin * m + j, m),
                 rows_of<T>(a + begin * m + j, m), rows, m - j, j - begin);
    T square[16];
    for (Index r = 0; r < rows; ++r) {
      T* row = corner + r * m;
      for (Index q = 0; q < r; ++q) {
        square[4 * r + q] = conj(corner[q * m + r]);
        for (Index i = r; i < rows; ++i) row[i] = row[i] - square[4 * r + q] * corner[q * m + i];
      }
      const Real<T> pivot = real(row[r]);
      if (!(pivot > 0 && pivot <= std::numeric_limits<Real<T>>::max())) return false;
      const Real<T> root = std::sqrt(pivot);
      row[r] = root;
      square[5 * r] = T(1) / T(root);
      for (Index i = r + 1; i < rows; ++i) row[i] = row[i] / T(root);
    }
    simd_rows::substitute(square, rows, corner + rows, m, m - j - rows);
  }
  return true;
}
/// l ← L with L Lᴴ = the symmetric part of a (destroyed); all NaN (but the zeros above) if that is
/// not positive definite.
template <class T>
void cholesky(T* a, Index n, T* l) {
  // longer sums before they are taken off would cost digits
  constexpr Index together = 48, strip = 96;
  // A positive matrix's largest element is on its diagonal; 4ᵏ is taken out of it where products of
  // rows would lose digits, or overflow.
  double most = 0;
  for (Index i = 0; i < n; ++i) most = std::max<double>(most, std::fabs(real(a[i * n + i])));
  double root = 1;
  if (n > 0 && extreme<Real<T>>(most) && most > 0) {
    int exponent = 0;
    std::frexp(most, &exponent);
    root = std::ldexp(1.0,
                      std::clamp(-exponent / 2, 2 - std::numeric_limits<Real<T>>::max_exponent / 2,
                                 std::numeric_limits<Real<T>>::max_exponent / 2 - 2));
    scale(a, root, n * n), scale(a, root, n * n);
  }
  simd_rows::symmetrize(a, n);
  bool positive = true;
  for (Index begin = 0; begin < n && positive; begin += together) {
    const Index end = std::min(begin + together, n);
    positive = cholesky_rows(a, n, begin, end);
    for (Index i = end; i < n && positive; i += strip)
      multiply_add(a + i * n + i, n, -1, simd_rows::adjoint<T>(a + begin * n + i, n),
                   rows_of<T>(a + begin * n + i, n), std::min(strip, n - i), n - i, end - begin);
  }
  for (Index i = 0; i < n; ++i) {
    std::fill(a + i * n, a + i * n + i, T(0));
    if (!positive) std::fill(a + i * n + i, a + (i + 1) * n, T(nan));
  }
  transpose(a, n, n, l);
  if constexpr (std::is_same_v<T, Complex>)
    for (Index i = 0; i < n * n; ++i) l[i] = conj(l[i]);
  scale(l, 1 / root, n * n);
}

/// Columns begin … begin + n − 1 of a (`width` to a row), from row `begin` on.
template <class T>
void lu_columns(T* a, Index m, Index width, Index begin, Index n, std::int32_t* pivots) {
  if (n > panel) {
    const Index half = (n / 2 + panel - 1) / panel * panel, next = begin + half;
    lu_columns(a, m, width, begin, half, pivots);
    T *upper = a + begin * width + next, *left = a + next * width + begin;
    const Index rows = std::min(half, m - begin);
    triangular_solve(Triangle<T>{a + begin * width + begin, width, true, false, true, false}, 0,
                     rows, upper, width, n - half);
    if (next >= m) return;
    multiply_add(a + next * width + next, width, -1, rows_of<T>(left, width),
                 rows_of<T>(upper, width), m - next, n - half, half);
    return lu_columns(a, m, width, next, n - half, pivots);
  }
  // Transposed, so that columns run along the vectors.
  const Index rows = m - begin, steps = std::min(n, rows);
  if (rows <= 0) return;
  RecycledVec<T> columns;
  columns.resize(n * rows);
  simd_rows::turn(a + begin * width + begin, width, rows, n, columns.data(), rows);
  for (Index k = 0; k < steps; ++k) {
    T* column = columns.data() + k * rows;
    const Index pivot = k + simd_rows::largest(column + k, rows - k);
    pivots[begin + k] = static_cast<std::int32_t>(begin + pivot);
    if (pivot != k) {
      for (Index j = 0; j < n; ++j) std::swap(columns[j * rows + k], columns[j * rows + pivot]);
      T *here = a + (begin + k) * width, *there = a + (begin + pivot) * width;
      std::swap_ranges(here, here + begin, there);
      std::swap_ranges(here + begin + n, here + width, there + begin + n);
    }
    if (column[k] == T(0)) continue;  // all below are zero, too
    simd_rows::divide(column + k + 1, column[k], rows - k - 1);
    T factors[panel];
    for (Index j = k + 1; j < n; ++j) factors[j - k - 1] = -columns[j * rows + k];
    add_to_rows(column + rows + k + 1, rows, n - k - 1, factors, 1, column + k + 1, rows - k - 1);
  }
  simd_rows::turn(columns.data(), rows, n, rows, a + begin * width + begin, width);
}
/// a ← L and U in one, with rows of a exchanged: row i of L U is row permutation[i] of a. The pivot
/// is the first largest element. All NaN, and nothing exchanged, if a is not finite.
template <class T>
void lu(T* a, Index m, Index n, std::int32_t* pivots, std::int32_t* permutation) {
  std::iota(permutation, permutation + m, 0);
  if (scale_of(a, m * n) == 0) {
    std::fill_n(a, m * n, T(nan));
    std::iota(pivots, pivots + std::min(m, n), 0);
    return;
  }
  lu_columns(a, m, n, 0, n, pivots);
  for (Index k = 0; k < std::min(m, n); ++k) std::swap(permutation[k], permutation[pivots[k]]);
}

/// x with a x = b (or aᵀ x = b), from a's factors.
template <class T>
void solve(const T* factors, const std::int32_t* permutation, const T* b, T* x, Index n, Index k,
           bool transposed) {
  const auto row_of = [&](Index i) { return std::clamp<Index>(permutation[i], 0, n - 1); };
  const Triangle<T> l{factors, n, true, transposed, true, false},
      u{factors, n, false, transposed, false, false};
  if (!transposed) {
    for (Index i = 0; i < n; ++i) std::copy_n(b + row_of(i) * k, k, x + i * k);
    triangular_solve(l, 0, n, x, k, k);
    triangular_solve(u, 0, n, x, k, k);
    return;
  }
  RecycledVec<T> y(b, b + n * k);
  triangular_solve(u, 0, n, y.data(), k, k);
  triangular_solve(l, 0, n, y.data(), k, k);
  std::fill_n(x, n * k, T(0));
  for (Index i = 0; i < n; ++i) std::copy_n(y.data() + i * k, k, x + row_of(i) * k);
}

/// Is U, of numbers that were R in memory, so near overflow or underflow that a solution by it may
/// be none?
template <class R, class T>
bool extreme_factors(const T* factors, Index n) {
  double most = 0;
  for (Index i = 0; i < n; ++i)
    most = std::max<double>(
        most, __builtin_isnan(size(factors[i * n + i])) ? infinity : size(factors[i * n + i]));
  return n > 0 && extreme<R>(most);
}
/// The same from a itself, destroyed, which is scaled before: a power of two is taken out of a, and
/// put in the right sides where that brings these nearer to 1, else in x.
template <class T>
void solve_scaled(T* a, std::int32_t* pivots, std::int32_t* permutation, const T* b, T* x, Index n,
                  Index k, bool transposed) {
  const double by = scale_of(a, n * n);
  if (by == 0) return static_cast<void>(std::fill_n(x, n * k, T(nan)));
  scale(a, by, n * n);
  lu(a, n, n, pivots, permutation);
  const bool before = (scale_of(b, n * k) > 1) == (by > 1);
  RecycledVec<T> y(b, b + n * k);
  if (before) scale(y.data(), by, n * k);
  solve(a, permutation, y.data(), x, n, k, transposed);
  if (!before) scale(x, by, n * k);
}

/// H = I − factor v vᴴ with v[0] = 1 and Hᴴ x = (beta, 0, …), beta real. x becomes v.
template <class T>
struct Reflection {
  T factor;
  double beta;
};
template <class T>
double squares_behind(const T* x, Index n) {
  double sum = 0;
  if constexpr (std::is_same_v<T, Complex>)
    for (Index i = 1; i < n; ++i) sum += square(x[i]);
  else if (n > 1) sum = dot(x + 1, x + 1, n - 1);
  return sum;
}
template <class T>
Reflection<T> reflect(T* x, Index n) {
  // Squares that have lost digits are of numbers that are small beside x[0], or else all of x is
  // brought near 1.
  constexpr double least =
      std::numeric_limits<Real<T>>::min() / std::numeric_limits<Real<T>>::epsilon();
  double below = squares_behind(x, n), by = 1;
  if (n > (std::is_same_v<T, Complex> ? 0 : 1) && below < least) {
    by = scale_of(x, n);
    if (by == 0) by = 1;
    scale(x, by, n);
    below = squares_behind(x, n);
  }
  const T head = n > 0 ? x[0] : T(0);
  if (n > 0) x[0] = T(1);
  if (below == 0 && imag(head) == 0) {
    std::fill(x + std::min<Index>(n, 1), x + n, T(0));
    return {T(0), real(head) / by};
  }
  const double beta = -std::copysign(std::sqrt(square(head) + below), real(head));
  if (n > 1) simd_rows::multiply(x + 1, T(1) / (head - T(beta)), n - 1);
  return {(T(beta) - head) / T(beta), beta / by};
}

/// c (m × n, `step` to a row) ← H₀ H₁ … c, or the adjoint's product; the reflections' vectors are
/// `count` rows of v, `width` to a row.
template <class T>
void apply_reflections(const T* v, Index width, const T* factors, Index count, Index m, T* c,
                       Index step, Index n, bool adjoint) {
  if (count <= 0 || n <= 0) return;
  // I − V t Vᴴ (Schreiber and Van Loan 1989)
  RecycledVec<T> room = zeros<T>(2 * count * count + 2 * count * n);
  T *gram = room.data(), *t = gram + count * count, *w = t + count * count, *tw = w + count * n;
  const View<T> conjugate{v, width, 1, true};
  multiply_add(gram, count, 1, conjugate, simd_rows::transposed(v, width), count, count, m);
  for (Index j = 0; j < count; ++j) {
    t[j * count + j] = factors[j];
    for (Index i = 0; i < j; ++i) {
      T sum = T(0);
      for (Index k = i; k < j; ++k) sum = sum + t[i * count + k] * gram[k * count + j];
      t[i * count + j] = -(factors[j] * sum);
    }
  }
  multiply_add(w, n, 1, conjugate, rows_of<T>(c, step), count, n, m);
  multiply_add(tw, n, 1, adjoint ? simd_rows::adjoint<T>(t, count) : rows_of<T>(t, count),
               rows_of<T>(w, n), count, n, count);
  multiply_add(c, step, -1, simd_rows::transposed(v, width), rows_of<T>(tw, n), m, n, count);
}
/// q (m × k) ← the first columns of H₀ H₁ …; vector j is zero before place j + offset.
template <class T>
void product_of_reflections(const T* v, const T* factors, Index count, Index m, T* q, Index k,
                            Index offset) {
  constexpr Index together = 2 * panel;
  std::fill_n(q, m * k, T(0));
  for (Index i = 0; i < std::min(m, k); ++i) q[i * k + i] = T(1);
  for (Index j = (count - 1) / together * together; count > 0 && j >= 0; j -= together) {
    // What stands above and left of the vectors' first place is not touched.
    const Index from = j + offset, rows = m - from, number = std::min(together, count - j);
    if (from >= k) continue;
    apply_reflections(v + j * m + from, m, factors + j, number, rows, q + from * k + from, k,
                      k - from, false);
  }
}

/// a (m × n, destroyed) = q r with LAPACK's signs: a diagonal element of r has the sign opposite to
/// what was above it. q is m × k, r k × n.
template <class T>
void qr(T* a, Index m, Index n, Index k, T* q, T* r) {
  const double factor = scale_of(a, m * n);
  if (factor == 0) {
    std::fill_n(q, m * k, T(nan)), std::fill_n(r, k * n, T(nan));
    return;
  }
  scale(a, factor, m * n);
  const Index steps = std::min(m, n);
  RecycledVec<T> vectors = zeros<T>(steps * m), factors = zeros<T>(steps);
  std::fill_n(r, k * n, T(0));
  RecycledVec<T> y = zeros<T>(panel), bar = zeros<T>(std::is_same_v<T, Complex> ? m : 0);
  for (Index j = 0; j < steps; j += panel) {
    const Index width = std::min(panel, steps - j), rows = m - j;
    T* columns = vectors.data() + j * m + j;  // transposed, m apart
    simd_rows::turn(a + j * n + j, n, rows, width, columns, m);
    for (Index c = 0; c < width; ++c) {
      T* column = columns + c * m;
      for (Index i = 0; i < c; ++i) r[(j + i) * n + j + c] = column[i];
      const Reflection<T> h = reflect(column + c, rows - c);
      r[(j + c) * n + j + c] = T(h.beta);
      factors[j + c] = h.factor;
      std::fill_n(column, c, T(0));
      const Index others = width - c - 1;
      const T* v = column + c;
      if constexpr (std::is_same_v<T, Complex>) {
        std::transform(v, v + rows - c, bar.data(), [](T x) { return conj(x); });
        v = bar.data();
      }
      row_dots(column + m + c, m, others, v, rows - c, y.data());
      for (Index i = 0; i < others; ++i) y[i] = -(conj(h.factor) * y[i]);
      add_to_rows(column + m + c, m, others, y.data(), 1, column + c, rows - c);
    }
    apply_reflections(columns, m, factors.data() + j, width, rows, a + j * n + j + width, n,
                      n - j - width, true);
    for (Index i = 0; i < width; ++i)
      std::copy(a + (j + i) * n + j + width, a + (j + i + 1) * n, r + (j + i) * n + j + width);
  }
  scale(r, 1 / factor, k * n);
  product_of_reflections(vectors.data(), factors.data(), steps, m, q, k, 0);
}

/// |x| of n numbers, in f64: of small f32 the squares vanish.
template <class T>
double length(const T* x, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += square(x[i]);
  return std::sqrt(sum);
}
/// The same with columns exchanged (Businger and Golub 1965): column j of q r is column order[j] of
/// a. The next column is the first of those that are longest below the rows that are done; lengths
/// are computed again where what is taken off them leaves few digits (Drmač and Bujanović 2008).
template <class T>
void qr_pivoted(T* a, Index m, Index n, Index k, T* q, T* r, std::int32_t* order) {
  std::iota(order, order + n, 0);
  const double factor = scale_of(a, m * n);
  if (factor == 0) {
    std::fill_n(q, m * k, T(nan)), std::fill_n(r, k * n, T(nan));
    return;
  }
  scale(a, factor, m * n);
  const Index steps = std::min(m, n);
  RecycledVec<T> vectors = zeros<T>(n * m), factors = zeros<T>(steps), y = zeros<T>(n),
                 bar = zeros<T>(std::is_same_v<T, Complex> ? m : 0);
  transpose(a, m, n, vectors.data());
  const auto column = [&](Index j) { return vectors.data() + j * m; };
  RecycledVec<double> lengths = zeros<double>(n), known;
  for (Index j = 0; j < n; ++j) lengths[j] = length(column(j), m);
  known = lengths;  // as computed last
  std::fill_n(r, k * n, T(0));
  for (Index j = 0; j < steps; ++j) {
    const auto longest = std::max_element(lengths.data() + j, lengths.data() + n);
    if (const Index p = longest - lengths.data(); p != j) {
      std::swap_ranges(column(j), column(j) + m, column(p));
      std::swap(order[j], order[p]);
      lengths[p] = lengths[j];
      known[p] = known[j];
    }
    T* v = column(j) + j;
    const Index rows = m - j, others = n - j - 1;
    const Reflection<T> h = reflect(v, rows);
    r[j * n + j] = T(h.beta);
    factors[j] = h.factor;
    const T* left = v;
    if constexpr (std::is_same_v<T, Complex>) {
      std::transform(v, v + rows, bar.data(), [](T x) { return conj(x); });
      left = bar.data();
    }
    if (others > 0) {
      row_dots(v + m, m, others, left, rows, y.data());
      for (Index i = 0; i < others; ++i) y[i] = -(conj(h.factor) * y[i]);
      add_to_rows(v + m, m, others, y.data(), 1, v, rows);
    }
    for (Index c = j + 1; c < n; ++c) {
      double &now = lengths[c], &before = known[c];
      if (now == 0) continue;
      const double off = size(column(c)[j]) / now, left_over = std::max(0.0, 1 - off * off);
      if (left_over * square(now / before) <= std::sqrt(epsilon<T>))
        now = before = length(column(c) + j + 1, rows - 1);
      else now *= std::sqrt(left_over);
    }
  }
  for (Index c = 0; c < n; ++c)
    for (Index i = 0; i < std::min(c, steps); ++i) {
      r[i * n + c] = column(c)[i];
      column(c)[i] = T(0);
    }
  scale(r, 1 / factor, k * n);
  product_of_reflections(vectors.data(), factors.data(), steps, m, q, k, 0);
}

/// b ← x with T x = b, T having `below`[i] at (i, i − 1), `d`[i] at (i, i) and
/// `above`[i] at (i, i + 1). Elimination with exchanges of neighbouring rows.
template <class T>
void tridiagonal_solve(const T* below, const T* diagonal, const T* above, T* b, Index n, Index k) {
  if (n == 0) return;
  // Row i of the upper triangle, divided by its pivot: a one, u[i] and far[i]. So the way back
  // waits for no division, and this one waits for one a row.
  RecycledVec<T> u = zeros<T>(n), far = zeros<T>(n);
  T pivot = diagonal[0], next = n > 1 ? above[0] : T(0);  // what is left of row i
  for (Index i = 0; i + 1 < n; ++i) {
    const std::size_t at = i;
    T *x = b + i * k, *y = x + k;
    const T l = below[i + 1], d = diagonal[i + 1], after = i + 2 < n ? above[i + 1] : T(0);
    T factor = T(0), top = pivot;
    if (size(pivot) < size(l)) {
      factor = pivot / l;
      top = l;
      u[at] = d / l;
      far[at] = after / l;
      pivot = next - factor * d;
      next = -(factor * after);
      std::swap_ranges(x, x + k, y);
    } else {
      if (l != T(0)) factor = l / pivot;
      u[at] = next / pivot;
      pivot = d - factor * next;
      next = after;
    }
    for (Index c = 0; c < k; ++c) {
      y[c] = y[c] - factor * x[c];
      x[c] = x[c] / top;
    }
  }
  for (Index c = 0; c < k; ++c) b[(n - 1) * k + c] = b[(n - 1) * k + c] / pivot;
  for (Index i = n - 2; i >= 0; --i) {
    const std::size_t at = i;
    // the last but one has no second neighbour: far is zero
    T *x = b + i * k, *y = x + k, *z = i + 2 < n ? y + k : y;
    for (Index c = 0; c < k; ++c) x[c] = (x[c] - far[at] * z[c]) - u[at] * y[c];
  }
}

template <class T>
void conjugate(const T* x, T* to, Index n) {
  for (Index i = 0; i < n; ++i) to[i] = conj(x[i]);
}

}  // namespace vt::detail::linalg_kernels
