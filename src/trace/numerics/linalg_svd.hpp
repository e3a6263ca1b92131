// svd of one matrix in memory: reduction to bidiagonal form, and QR steps.
#pragma once

#include "linalg_rotations.hpp"

namespace vt::detail::linalg_kernels {

/// a (n × n, destroyed) → diagonal d and real upper diagonal e of Uᴴ a V, with U and V.
template <class T>
void bidiagonalize(T* a, Index n, double* d, double* e, T* u, T* v) {
  RecycledVec<T> left = zeros<T>(n * n), right = left, left_factors = zeros<T>(n),
                 right_factors = left_factors;
  RecycledVec<T> x = zeros<T>(n), w = x, y = x, y_bar = x, z = x;
  for (Index i = 0; i < n; ++i) x[i] = a[i * n];
  for (Index s = 0; s < n; ++s) {
    const Index count = n - s - 1;
    const Reflection<T> h = reflect(x.data() + s, n - s);
    d[s] = h.beta;
    left_factors[s] = h.factor;
    std::copy_n(x.data() + s, n - s, left.data() + s * n + s);
    if (count == 0) break;
    if (s == 0)
      for (Index i = 0; i < n; ++i) add_to(w.data() + 1, conj(x[i]), a + i * n + 1, n - 1);
    // w = vᴴ a, of the columns behind s
    const T f = -conj(h.factor);
    T* row = a + s * n + s + 1;
    add_to(row, f, w.data() + s + 1, count);  // v[0] = 1
    conjugate(row, y.data() + s + 1, count);
    const Reflection<T> g = reflect(y.data() + s + 1, count);
    e[s] = g.beta;
    right_factors[s] = g.factor;
    std::copy_n(y.data() + s + 1, count, right.data() + s * n + s + 1);
    conjugate(y.data() + s + 1, y_bar.data() + s + 1, count);
    for (Index i = s + 1; i < n; ++i) {
      const std::size_t at = i;
      T* line = a + i * n + s + 1;
      z[at] = -g.factor * simd_rows::add_two(line, f * x[at], w.data() + s + 1, T(0),
                                             w.data() + s + 1, y.data() + s + 1, count);
    }
    // The next column, and then the rest along with what the next vector makes of it.
    for (Index i = s + 1; i < n; ++i) {
      const std::size_t at = i;
      x[at] = a[i * n + s + 1] + z[at];
    }
    RecycledVec<T> ahead(x.begin() + s + 1, x.begin() + n);
    reflect(ahead.data(), count);
    std::fill(w.begin(), w.end(), T(0));
    for (Index i = s + 1; i < n; ++i) {
      const std::size_t at = i;
      simd_rows::add_on(a + i * n + s + 2, z[at], y_bar.data() + s + 2, w.data() + s + 2,
                        conj(ahead[i - s - 1]), count - 1);
    }
  }
  if (!u) return;
  product_of_reflections(left.data(), left_factors.data(), n, n, u, n, 0);
  product_of_reflections(right.data(), right_factors.data(), n - 1, n, v, n, 1);
}

/// Singular values of the bidiagonal matrix (d, e) into d; the rows of u and v are rotated along.
/// Implicit QR steps with Wilkinson's shift (Golub and Reinsch 1970). False if they do not
/// converge.
template <class E>
bool diagonalize(double* d, double* e, Index n, Rotations<E>& u, Rotations<E>& v) {
  double most = 0;
  for (Index i = 0; i < n; ++i)
    most = std::max({most, std::fabs(d[i]), i + 1 < n ? std::fabs(e[i]) : 0});
  const double tiny = epsilon<E> * most;
  Index high = n - 1;
  for (Index iterations = 0; high > 0; ++iterations) {
    if (iterations > 60 * n) return false;
    Index low = high;
    bool split = false;
    while (low > 0 && !split) {
      if (std::fabs(e[low - 1]) <= epsilon<E> * (std::fabs(d[low - 1]) + std::fabs(d[low])) ||
          std::fabs(e[low - 1]) <= tiny * epsilon<E>) {
        e[low - 1] = 0;
        break;
      }
      if (std::fabs(d[low - 1]) <= tiny) {
        // A zero on the diagonal: its row is emptied by turning it with those below.
        double f = e[low - 1];
        d[low - 1] = e[low - 1] = 0;
        for (Index i = low; i <= high && f != 0; ++i) {
          const double r = std::hypot(d[i], f), c = d[i] / r, s = -f / r;
          d[i] = r;
          u.add(low - 1, i, c, -s);
          if (i == high) break;
          f = s * e[i];
          e[i] *= c;
        }
        split = true;
        break;
      }
      --low;
    }
    if (split) continue;
    if (low == high) {
      --high;
      continue;
    }
    const double before = high - 1 > low ? e[high - 2] : 0;
    const double t11 = d[high - 1] * d[high - 1] + before * before, t12 = d[high - 1] * e[high - 1],
                 t22 = d[high] * d[high] + e[high - 1] * e[high - 1];
    const double half = (t11 - t22) / 2,
                 shift = t12 == 0 ? t22
                                  : t22 - t12 * t12 /
                                              (half + std::copysign(std::hypot(half, t12), half));
    double y = d[low] - shift / d[low], z = e[low];
    for (Index k = low; k < high; ++k) {
      double r = std::hypot(y, z), c = r == 0 ? 1 : y / r, s = r == 0 ? 0 : z / r;
      if (k > low) e[k - 1] = r;
      const double dk = d[k], ek = e[k], dn = d[k + 1];
      y = c * dk + s * ek;
      const double e_new = c * ek - s * dk;
      z = s * dn;
      d[k + 1] = c * dn;
      v.add(k, k + 1, c, -s);
      r = std::hypot(y, z), c = r == 0 ? 1 : y / r, s = r == 0 ? 0 : z / r;
      d[k] = r;
      e[k] = c * e_new + s * d[k + 1];
      d[k + 1] = c * d[k + 1] - s * e_new;
      u.add(k, k + 1, c, -s);
      if (k + 1 == high) break;
      y = e[k];
      z = s * e[k + 1];
      e[k + 1] *= c;
    }
  }
  return true;
}

/// Singular values of a (m × n, m ≥ n, destroyed), descending; u is m × columns (n, or m for a full
/// one) and vh n × n, unless null. The first element of a left vector that is no smaller than 0.37
/// of its largest has no negative real part, so that signs do not depend on the algorithm.
template <class T>
void tall_svd(T* a, Index m, Index n, T* u, Index columns, double* values, T* vh) {
  const double factor = scale_of(a, m * n);
  const auto fail = [&] {
    std::fill_n(values, n, nan);
    if (u) std::fill_n(u, m * columns, T(nan)), std::fill_n(vh, n * n, T(nan));
  };
  if (factor == 0) return fail();
  scale(a, factor, m * n);
  RecycledVec<T> q, r;
  if (m > n) {
    q = zeros<T>(m * columns), r = zeros<T>(columns * n);
    qr(a, m, n, columns, q.data(), r.data());
    a = r.data();
  }
  RecycledVec<double> d = zeros<double>(n), e = d;
  const Index size_of_all = u ? n * n : 0;
  RecycledVec<T> basis = zeros<T>(size_of_all), ut = basis, vt = basis, v = basis;
  bidiagonalize(a, n, d.data(), e.data(), u ? basis.data() : nullptr, u ? v.data() : nullptr);
  if (u) {
    transpose(basis.data(), n, n, ut.data());
    transpose(v.data(), n, n, vt.data());
  }
  bool converged = true;
  {
    Rotations<Real<T>> left = rotations_of(u ? ut.data() : nullptr, n),
                       right = rotations_of(u ? vt.data() : nullptr, n);
    converged = diagonalize(d.data(), e.data(), n, left, right);
  }
  if (!converged) return fail();
  RecycledVec<double> lengths = zeros<double>(n);
  for (Index i = 0; i < n; ++i) lengths[i] = std::fabs(d[i]);
  const Vec<Index> order = ordered(lengths, n, true);
  for (Index k = 0; k < n; ++k) {
    const Index i = order[k];
    values[k] = lengths[i] / factor;
    if (!u) continue;
    conjugate(vt.data() + i * n, vh + k * n, n);
    if (d[i] < 0) scale(vh + k * n, -1, n);
    for (Index row = 0; row < n; ++row) basis[row * n + k] = ut[i * n + row];
  }
  if (!u) return;
  if (m == n) {
    std::copy_n(basis.data(), n * n, u);
  } else {
    std::fill_n(u, m * columns, T(0));
    const T *left = q.data(), *right = basis.data();
    multiply_add(u, columns, 1, simd_rows::rows_of(left, columns), simd_rows::rows_of(right, n), m,
                 n, n);
    for (Index row = 0; row < m; ++row)
      std::copy_n(q.data() + row * columns + n, columns - n, u + row * columns + n);
  }
  // Row after row, as u lies in memory.
  RecycledVec<double> most = zeros<double>(n);
  for (Index row = 0; row < m; ++row)
    for (Index k = 0; k < n; ++k) most[k] = std::max(most[k], size(u[row * columns + k]));
  RecycledVec<T> sign = zeros<T>(n);
  bool flipped = false;
  for (Index k = 0; k < n; ++k) {
    Index first = 0;
    while (first + 1 < m && size(u[first * columns + k]) < 0.37 * most[k]) ++first;
    const bool negative = real(u[first * columns + k]) < 0;
    sign[k] = T(negative ? -1 : 1);
    if (negative) scale(vh + k * n, -1, n);
    flipped = flipped || negative;
  }
  for (Index row = 0; flipped && row < m; ++row)
    for (Index k = 0; k < n; ++k) u[row * columns + k] = u[row * columns + k] * sign[k];
}

/// Singular value decomposition of a (m × n, destroyed): a wide matrix by way of its adjoint.
template <class T>
void svd(T* a, Index m, Index n, bool full, T* u, double* values, T* vh) {
  if (m >= n) return tall_svd(a, m, n, u, full ? m : n, values, vh);
  const Index k = full ? n : m;
  RecycledVec<T> t = zeros<T>(m * n), v = zeros<T>(n * k), uh = zeros<T>(m * m);
  transpose(a, m, n, t.data());
  conjugate(t.data(), t.data(), m * n);
  tall_svd(t.data(), n, m, u ? v.data() : nullptr, k, values, uh.data());
  if (!u) return;
  transpose(v.data(), n, k, vh);
  conjugate(vh, vh, n * k);
  transpose(uh.data(), m, m, u);
  conjugate(u, u, m * m);
}

}  // namespace vt::detail::linalg_kernels
