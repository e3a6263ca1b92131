// eigh of one symmetric matrix in memory: reduction to tridiagonal form, and implicit QL steps.
#pragma once

#include "linalg_rotations.hpp"

namespace vt::detail::linalg_kernels {

/// Symmetric (Hermitian) a (n × n, destroyed) → diagonal d and real off-diagonal e of Qᴴ a Q, and
/// Q. Householder's reduction; a row is updated and multiplied with the next vector on one way
/// through it.
template <class T>
void tridiagonalize(T* a, Index n, double* d, double* e, T* q) {
  RecycledVec<T> vectors = zeros<T>(n * n), factors = zeros<T>(n), v = zeros<T>(n), v_bar = v,
                 w = v, w_bar = v, next = v, y = v;
  bool pending = false;  // an update with v and w, of what begins at s
  for (Index s = 0; s < n; ++s) {
    T* row = a + s * n + s;
    const Index count = n - s - 1;
    // v, w … stand at their absolute places.
    if (pending) {
      add_to(row, -w[s], v_bar.data() + s, n - s);
      add_to(row, -v[s], w_bar.data() + s, n - s);
    }
    d[s] = real(row[0]);
    if (count == 0) break;
    T* x = next.data() + s + 1;
    conjugate(row + 1, x, count);
    const Reflection<T> h = reflect(x, count);
    e[s] = h.beta;
    factors[s] = h.factor;
    std::copy_n(x, count, vectors.data() + s * n + s + 1);
    for (Index i = s + 1; i < n; ++i) {
      T* line = a + i * n + s + 1;
      const std::size_t at = i;
      y[at] = pending ? simd_rows::add_two(line, -w[at], v_bar.data() + s + 1, -v[at],
                                           w_bar.data() + s + 1, x, count)
                      : dot(line, x, count);
    }
    pending = !(h.factor == T(0));
    if (!pending) continue;
    std::copy_n(x, count, v.data() + s + 1);
    conjugate(v.data() + s + 1, v_bar.data() + s + 1, count);
    const double length = real(dot(v_bar.data() + s + 1, y.data() + s + 1, count));
    for (Index i = s + 1; i < n; ++i) {
      const std::size_t at = i;
      w[at] = h.factor * y[at] - T(0.5 * square(h.factor) * length) * v[at];
    }
    conjugate(w.data() + s + 1, w_bar.data() + s + 1, count);
  }
  if (q) product_of_reflections(vectors.data(), factors.data(), n - 1, n, q, n, 1);
}

/// Eigenvalues of the tridiagonal matrix (d, e) into d; the rows of z are rotated along. Implicit
/// QL steps with Wilkinson's shift (Bowdler, Martin, Reinsch and Wilkinson 1968). False if they do
/// not converge.
template <class E>
bool diagonalize(double* d, double* e, Index n, Rotations<E>& z) {
  // where squares lose digits; of a matrix near 1
  constexpr double least = std::numeric_limits<double>::min() / epsilon<double>, tiny = 0x1p-485;
  if (n > 0) e[n - 1] = 0;
  for (Index l = 0; l < n; ++l) {
    for (int iteration = 0;; ++iteration) {
      Index m = l;
      while (m + 1 < n &&
             std::fabs(e[m]) > epsilon<E> * (std::fabs(d[m]) + std::fabs(d[m + 1])) + tiny)
        ++m;
      if (m == l) break;
      if (iteration == 60) return false;
      const double half = (d[l + 1] - d[l]) / (2 * e[l]);
      double g = d[m] - d[l] + e[l] / (half + std::copysign(std::hypot(half, 1.0), half));
      double s = 1, c = 1, moved = 0;
      Index i = m - 1;
      for (; i >= l; --i) {
        // The quotient does not wait for the root.
        const double f = s * e[i], b = c * e[i], square = f * f + g * g,
                     r = square < least ? std::hypot(f, g) : std::sqrt(square);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= moved;
          e[m] = 0;
          break;
        }
        const double inverse = r * (1 / square);
        s = square < least ? f / r : f * inverse;
        c = square < least ? g / r : g * inverse;
        g = d[i + 1] - moved;
        const double t = (d[i] - g) * s + 2 * c * b;
        moved = s * t;
        d[i + 1] = g + moved;
        g = c * t - b;
        z.add(i, i + 1, c, s);
      }
      if (i >= l) continue;
      d[l] -= moved;
      e[l] = g;
      e[m] = 0;
    }
  }
  return true;
}

/// Eigenvalues of the symmetric (Hermitian) part of a (destroyed), ascending; eigenvectors as the
/// columns of v, unless null. The first element of an eigenvector that is no smaller than 0.37 of
/// its largest is positive: a sign that rounding does not turn where elements are equal.
template <class T>
void eigh(T* a, Index n, double* values, T* v) {
  const double factor = scale_of(a, n * n);
  scale(a, factor, n * n);
  simd_rows::symmetrize(a, n);
  RecycledVec<double> d = zeros<double>(n), e = d;
  RecycledVec<T> q = zeros<T>(v ? n * n : 0), z = q;
  bool converged = factor != 0;
  if (converged) {
    tridiagonalize(a, n, d.data(), e.data(), v ? q.data() : nullptr);
    if (v) transpose(q.data(), n, n, z.data());
    Rotations<Real<T>> rows = rotations_of(v ? z.data() : nullptr, n);
    converged = diagonalize(d.data(), e.data(), n, rows);
  }
  if (!converged) {
    std::fill_n(values, n, nan);
    if (v) std::fill_n(v, n * n, T(nan));
    return;
  }
  const Vec<Index> order = ordered(d, n, false);
  for (Index j = 0; j < n; ++j) {
    const Index from = order[j];
    values[j] = d[from] / factor;
    if (!v) continue;
    const T* row = z.data() + from * n;
    double most = 0;
    for (Index i = 0; i < n; ++i) most = std::max(most, size(row[i]));
    Index first = 0;
    while (size(row[first]) < 0.37 * most) ++first;
    const T phase = conj(row[first]) / T(size(row[first]));
    for (Index i = 0; i < n; ++i) v[i * n + j] = phase * row[i];
    v[first * n + j] = real(v[first * n + j]);
  }
}

}  // namespace vt::detail::linalg_kernels
