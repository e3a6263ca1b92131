// Factorisations of one matrix in memory, for doubles and complex numbers: recursive or in panels, so that nearly all work is products.
#pragma once

#include <algorithm>
#include <limits>
#include <numeric>

#include <vt/small_vec.hpp>

#include "matrix_lanes.hpp"
#include "recycled.hpp"

namespace vt::detail::linalg_kernels {

using matrix_lanes::add_to, matrix_lanes::conj, matrix_lanes::dot, matrix_lanes::imag, matrix_lanes::Index, matrix_lanes::multiply_add,
    matrix_lanes::real, matrix_lanes::size, matrix_lanes::square, matrix_lanes::View;
using matrix_lanes::Complex;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double epsilon = std::numeric_limits<double>::epsilon();
constexpr Index panel = 16;  ///< columns that are worked on one by one

template <class T>
RecycledVec<T> zeros(Index n) {
  return RecycledVec<T>(static_cast<std::size_t>(n) + 1);
}
template <class T>
void scale(T* x, double a, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = x[i] * T(a);
}
template <class T>
void transpose(const T* a, Index m, Index n, T* t) {
  matrix_lanes::turn(a, n, m, n, t, m);
}

/// The power of two that brings the largest element near 1, so that squares neither overflow nor vanish; 0 if an element is not finite.
template <class T>
double scale_of(const T* a, Index n) {
  const double* x = reinterpret_cast<const double*>(a);
  double most = 0;
  for (Index i = 0; i < n * static_cast<Index>(sizeof(T) / sizeof(double)); ++i) {
    if (!std::isfinite(x[i])) return 0;
    most = std::max(most, std::fabs(x[i]));
  }
  if (most == 0) return 1;
  int exponent = 0;
  std::frexp(most, &exponent);
  return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

/// The symmetric (Hermitian) part of a, in place, by squares that stay in the cache; `above`: not only at and below the diagonal.
template <class T>
void symmetrize(T* a, Index n, bool above) {
  constexpr Index square = 16;
  for (Index from = 0; from < n; from += square)
    for (Index left = 0; left <= from; left += square)
      for (Index i = from; i < std::min(from + square, n); ++i) {
        for (Index j = left; j < std::min(left + square, i); ++j) {
          a[i * n + j] = T(0.5) * a[i * n + j] + T(0.5) * conj(a[j * n + i]);
          if (above) a[j * n + i] = conj(a[i * n + j]);
        }
        a[i * n + i] = real(a[i * n + i]);
      }
}

/// b ← x with op(a) x = b; b is n × k, rows of a are `width` apart. `adjoint` is the conjugate transpose.
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
    return transposed ? View<T>{a + j * width + i, 1, width, conjugate} : View<T>{a + i * width + j, width, 1, conjugate};
  }
};
/// Of one right side, along the rows of a in memory.
template <class T>
void triangular_solve_one(const Triangle<T>& t, Index n, T* b) {
  const bool forward = t.lower != t.transposed;
  for (Index s = 0; s < n; ++s) {
    const Index i = forward ? s : n - 1 - s, first = forward == t.transposed ? i + 1 : 0, count = forward == t.transposed ? n - 1 - i : i;
    const T* row = t.a + i * t.width;
    if (!t.transposed) b[i] = b[i] - dot(row + first, b + first, count);
    if (!t.unit) b[i] = b[i] / row[i];
    if (t.transposed) add_to(b + first, -b[i], row + first, count);
  }
}
template <class T>
void triangular_solve(const Triangle<T>& t, Index begin, Index n, T* b, Index step, Index k) {
  const bool forward = t.lower != t.transposed;
  if (k == 1 && step == 1 && begin == 0 && !t.conjugate) return triangular_solve_one(t, n, b);
  if (n <= panel || k == 1) {
    for (Index s = 0; s < n; ++s) {
      const Index i = forward ? s : n - 1 - s;
      T* row = b + i * step;
      for (Index before = 0; before < s; ++before) {
        const Index j = forward ? before : n - 1 - before;
        const T factor = -t.at(begin + i, begin + j);
        if (k == 1) row[0] = row[0] + factor * b[j * step];
        else add_to(row, factor, b + j * step, k);
      }
      if (t.unit) continue;
      const T pivot = t.at(begin + i, begin + i);
      for (Index c = 0; c < k; ++c) row[c] = row[c] / pivot;
    }
    return;
  }
  const Index half = n / 2, first = forward ? 0 : half, second = forward ? half : 0, length = forward ? half : n - half;
  triangular_solve(t, begin + first, length, b + first * step, step, k);
  multiply_add(b + second * step, step, -1, t.block(begin + second, begin + first), View<T>{b + first * step, step, 1}, n - length, k, length);
  triangular_solve(t, begin + second, n - length, b + second * step, step, k);
}

/// The lower triangle of c (n × n) −= x xᴴ, x n × k.
template <class T>
void subtract_square(T* c, const T* x, Index width, Index n, Index k) {
  constexpr Index whole = 48;
  for (Index i = 0; i < n; i += whole) {
    const Index rows = std::min(whole, n - i);
    multiply_add(c + i * width, width, -1, matrix_lanes::rows_of(x + i * width, width), matrix_lanes::adjoint(x, width), rows, i + rows, k);
  }
}
/// Columns begin … begin + n − 1 of L, from row `begin` on, in the place of the m × m matrix's; false if it is not positive definite.
template <class T>
bool cholesky_columns(T* a, Index m, Index begin, Index n) {
  if (n > panel) {
    const Index half = n / 2, next = begin + half, count = n - half;
    if (!cholesky_columns(a, m, begin, half)) return false;
    T *corner = a + next * m + next, *left = a + next * m + begin;
    subtract_square(corner, left, m, count, half);
    multiply_add(corner + count * m, m, -1, matrix_lanes::rows_of<T>(left + count * m, m), matrix_lanes::adjoint<T>(left, m), m - next - count, count,
                 half);
    return cholesky_columns(a, m, next, count);
  }
  // Turned, so that columns run along the vectors.
  const Index rows = m - begin;
  RecycledVec<T> columns = zeros<T>(n * rows);
  matrix_lanes::turn(a + begin * m + begin, m, rows, n, columns.data(), rows);
  for (Index j = 0; j < n; ++j) {
    T* column = columns.data() + j * rows;
    for (Index k = 0; k < j; ++k) {
      const T* other = columns.data() + k * rows + j;
      add_to(column + j, -conj(other[0]), other, rows - j);
    }
    const double pivot = real(column[j]);
    if (!(pivot > 0)) return false;
    column[j] = std::sqrt(pivot);
    matrix_lanes::divide(column + j + 1, column[j], rows - j - 1);
  }
  matrix_lanes::turn(columns.data(), rows, n, rows, a + begin * m + begin, m);
  return true;
}
/// a ← L with L Lᴴ = the symmetric part of a; all NaN (but the zeros above) if that is not positive definite.
template <class T>
void cholesky(T* a, Index n) {
  symmetrize(a, n, false);
  const bool positive = cholesky_columns(a, n, 0, n);
  for (Index i = 0; i < n; ++i) {
    if (!positive) std::fill(a + i * n, a + i * n + i + 1, T(nan));
    std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
  }
}

/// Columns begin … begin + n − 1 of a (`width` to a row), from row `begin` on.
template <class T>
void lu_columns(T* a, Index m, Index width, Index begin, Index n, std::int32_t* pivots) {
  if (n > panel) {
    const Index half = n / 2, next = begin + half;
    lu_columns(a, m, width, begin, half, pivots);
    T *upper = a + begin * width + next, *left = a + next * width + begin;
    const Index rows = std::min(half, m - begin);
    triangular_solve(Triangle<T>{a + begin * width + begin, width, true, false, true, false}, 0, rows, upper, width, n - half);
    if (next >= m) return;
    multiply_add(a + next * width + next, width, -1, matrix_lanes::rows_of(left, width), matrix_lanes::rows_of(upper, width), m - next, n - half,
                 half);
    return lu_columns(a, m, width, next, n - half, pivots);
  }
  // Turned, so that columns run along the vectors.
  const Index rows = m - begin, steps = std::min(n, rows);
  if (rows <= 0) return;
  RecycledVec<T> columns = zeros<T>(n * rows);
  matrix_lanes::turn(a + begin * width + begin, width, rows, n, columns.data(), rows);
  for (Index k = 0; k < steps; ++k) {
    T* column = columns.data() + k * rows;
    const Index pivot = k + matrix_lanes::largest(column + k, rows - k);
    pivots[begin + k] = static_cast<std::int32_t>(begin + pivot);
    if (pivot != k) {
      for (Index j = 0; j < n; ++j) std::swap(columns[static_cast<std::size_t>(j * rows + k)], columns[static_cast<std::size_t>(j * rows + pivot)]);
      T *here = a + (begin + k) * width, *there = a + (begin + pivot) * width;
      std::swap_ranges(here, here + begin, there);
      std::swap_ranges(here + begin + n, here + width, there + begin + n);
    }
    if (column[k] == T(0)) continue;  // all below are zero, too
    matrix_lanes::divide(column + k + 1, column[k], rows - k - 1);
    for (Index j = k + 1; j < n; ++j) {
      T* other = columns.data() + j * rows;
      add_to(other + k + 1, -other[k], column + k + 1, rows - k - 1);
    }
  }
  matrix_lanes::turn(columns.data(), rows, n, rows, a + begin * width + begin, width);
}
/// a ← L and U in one, with rows of a exchanged: row i of L U is row permutation[i] of a. The pivot is the first largest element.
template <class T>
void lu(T* a, Index m, Index n, std::int32_t* pivots, std::int32_t* permutation) {
  lu_columns(a, m, n, 0, n, pivots);
  std::iota(permutation, permutation + m, 0);
  for (Index k = 0; k < std::min(m, n); ++k) std::swap(permutation[k], permutation[pivots[k]]);
}

/// x with a x = b (or aᵀ x = b), from a's factors.
template <class T>
void solve(const T* factors, const std::int32_t* permutation, const T* b, T* x, Index n, Index k, bool transposed) {
  const auto row_of = [&](Index i) { return std::clamp<Index>(permutation[i], 0, n - 1); };
  const Triangle<T> l{factors, n, true, transposed, true, false}, u{factors, n, false, transposed, false, false};
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

/// H = I − factor v vᴴ with v[0] = 1 and Hᴴ x = (beta, 0, …), beta real. x becomes v.
template <class T>
struct Reflection {
  T factor;
  double beta;
};
template <class T>
Reflection<T> reflect(T* x, Index n) {
  double below = 0;
  for (Index i = 1; i < n; ++i) below += square(x[i]);
  const T head = n > 0 ? x[0] : T(0);
  if (n > 0) x[0] = T(1);
  if (below == 0 && imag(head) == 0) return {T(0), real(head)};
  const double beta = -std::copysign(std::sqrt(square(head) + below), real(head));
  const T inverse = T(1) / (head - T(beta));
  for (Index i = 1; i < n; ++i) x[i] = x[i] * inverse;
  return {(T(beta) - head) / T(beta), beta};
}

/// c (m × n, `step` to a row) ← H₀ H₁ … c, or the adjoint's product; the reflections' vectors are `count` rows of v, m to a row.
template <class T>
void apply_reflections(const T* v, const T* factors, Index count, Index m, T* c, Index step, Index n, bool adjoint) {
  if (count <= 0 || n <= 0) return;
  // I − V t Vᴴ (Schreiber and Van Loan 1989)
  RecycledVec<T> gram = zeros<T>(count * count), t = gram, w = zeros<T>(count * n), tw = w;
  const View<T> conjugate{v, m, 1, true};
  multiply_add(gram.data(), count, 1, conjugate, matrix_lanes::turned(v, m), count, count, m);
  for (Index j = 0; j < count; ++j) {
    t[static_cast<std::size_t>(j * count + j)] = factors[j];
    for (Index i = 0; i < j; ++i) {
      T sum = T(0);
      for (Index k = i; k < j; ++k) sum = sum + t[static_cast<std::size_t>(i * count + k)] * gram[static_cast<std::size_t>(k * count + j)];
      t[static_cast<std::size_t>(i * count + j)] = -(factors[j] * sum);
    }
  }
  multiply_add(w.data(), n, 1, conjugate, matrix_lanes::rows_of(static_cast<const T*>(c), step), count, n, m);
  const T* rows = t.data();
  multiply_add(tw.data(), n, 1, adjoint ? matrix_lanes::adjoint(rows, count) : matrix_lanes::rows_of(rows, count),
               matrix_lanes::rows_of(static_cast<const T*>(w.data()), n), count, n, count);
  multiply_add(c, step, -1, matrix_lanes::turned(v, m), matrix_lanes::rows_of(static_cast<const T*>(tw.data()), n), m, n, count);
}
/// q (m × k) ← the first columns of H₀ H₁ …; vector j is zero before place j + offset.
template <class T>
void product_of_reflections(const T* v, const T* factors, Index count, Index m, T* q, Index k, Index offset) {
  constexpr Index together = 2 * panel;
  std::fill_n(q, m * k, T(0));
  for (Index i = 0; i < std::min(m, k); ++i) q[i * k + i] = T(1);
  for (Index j = (count - 1) / together * together; count > 0 && j >= 0; j -= together) {
    // What stands above and left of the vectors' first place is not touched.
    const Index from = j + offset, rows = m - from, number = std::min(together, count - j);
    if (from >= k) continue;
    RecycledVec<T> own = zeros<T>(number * rows);
    for (Index i = 0; i < number; ++i) std::copy_n(v + (j + i) * m + from, rows, own.data() + i * rows);
    apply_reflections(own.data(), factors + j, number, rows, q + from * k + from, k, k - from, false);
  }
}

/// a (m × n, destroyed) = q r with LAPACK's signs: a diagonal element of r has the sign opposite to what was above it. q is m × k, r k × n.
template <class T>
void qr(T* a, Index m, Index n, Index k, T* q, T* r) {
  const double factor = scale_of(a, m * n);
  if (factor != 0) scale(a, factor, m * n);
  const Index steps = std::min(m, n);
  RecycledVec<T> vectors = zeros<T>(steps * m), factors = zeros<T>(steps);
  std::fill_n(r, k * n, T(0));
  for (Index j = 0; j < steps; j += panel) {
    const Index width = std::min(panel, steps - j), rows = m - j;
    RecycledVec<T> columns = zeros<T>(width * rows);
    matrix_lanes::turn(a + j * n + j, n, rows, width, columns.data(), rows);
    for (Index c = 0; c < width; ++c) {
      T* column = columns.data() + c * rows;
      for (Index i = 0; i < c; ++i) r[(j + i) * n + j + c] = column[i];
      const Reflection<T> h = reflect(column + c, rows - c);
      r[(j + c) * n + j + c] = T(h.beta);
      factors[static_cast<std::size_t>(j + c)] = h.factor;
      std::fill_n(column, c, T(0));
      RecycledVec<T> conjugate(column + c, column + rows);
      for (T& x : conjugate) x = conj(x);
      for (Index other = c + 1; other < width; ++other) {
        T* y = columns.data() + other * rows + c;
        add_to(y, -(conj(h.factor) * dot(conjugate.data(), y, rows - c)), column + c, rows - c);
      }
      std::copy_n(column, rows, vectors.data() + (j + c) * m + j);
    }
    apply_reflections(columns.data(), factors.data() + j, width, rows, a + j * n + j + width, n, n - j - width, true);
    for (Index i = 0; i < width; ++i) std::copy(a + (j + i) * n + j + width, a + (j + i + 1) * n, r + (j + i) * n + j + width);
  }
  if (factor != 0) scale(r, 1 / factor, k * n);
  product_of_reflections(vectors.data(), factors.data(), steps, m, q, k, 0);
}

/// b ← x with T x = b, T having `below`[i] at (i, i − 1), `d`[i] at (i, i) and `above`[i] at (i, i + 1). Elimination with exchanges of
/// neighbouring rows.
template <class T>
void tridiagonal_solve(const T* below, const T* diagonal, const T* above, T* b, Index n, Index k) {
  RecycledVec<T> d(diagonal, diagonal + n), u(above, above + n), far = zeros<T>(n);
  for (Index i = 0; i + 1 < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    T *x = b + i * k, *y = x + k;
    T l = below[i + 1];
    if (size(d[at]) < size(l)) {
      std::swap(d[at], l);
      std::swap(u[at], d[at + 1]);
      if (i + 2 < n) std::swap(far[at], u[at + 1]);
      std::swap_ranges(x, x + k, y);
    }
    if (l == T(0)) continue;
    const T factor = l / d[at];
    d[at + 1] = d[at + 1] - factor * u[at];
    if (i + 2 < n) u[at + 1] = u[at + 1] - factor * far[at];
    add_to(y, -factor, x, k);
  }
  for (Index i = n - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    T* x = b + i * k;
    if (i + 1 < n) add_to(x, -u[at], x + k, k);
    if (i + 2 < n) add_to(x, -far[at], x + 2 * k, k);
    for (Index c = 0; c < k; ++c) x[c] = x[c] / d[at];
  }
}

}  // namespace vt::detail::linalg_kernels
