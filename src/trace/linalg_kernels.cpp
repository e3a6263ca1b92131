// The algorithms of linear algebra for one matrix in f64, and the loop over a batch of matrices of any float dtype.
#include "linalg_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>

#include <vt/small_vec.hpp>

namespace vt::detail::linalg_kernels {

using Index = std::int64_t;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double epsilon = std::numeric_limits<double>::epsilon();

inline double dot(const double* x, const double* y, Index n) {
  double sum = 0;
  for (Index i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
/// y += a x
inline void add_to(double* y, double a, const double* x, Index n) {
  for (Index i = 0; i < n; ++i) y[i] += a * x[i];
}
/// (x, y) ← (c x − s y, s x + c y)
inline void rotate(double* x, double* y, double c, double s, Index n) {
  for (Index i = 0; i < n; ++i) {
    const double u = x[i], v = y[i];
    x[i] = c * u - s * v;
    y[i] = s * u + c * v;
  }
}
inline void scale(double* x, double a, Index n) {
  for (Index i = 0; i < n; ++i) x[i] *= a;
}

/// The power of two that brings the largest element near 1, so that squares neither overflow nor vanish; 0 if an element is not finite.
double scale_of(const double* a, Index n) {
  double most = 0;
  for (Index i = 0; i < n; ++i) {
    if (!std::isfinite(a[i])) return 0;
    most = std::max(most, std::fabs(a[i]));
  }
  if (most == 0) return 1;
  int exponent = 0;
  std::frexp(most, &exponent);
  return std::ldexp(1.0, std::clamp(-exponent, -1000, 1000));
}

/// The symmetric part of a, in place.
void symmetrize(double* a, Index n) {
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < i; ++j) a[i * n + j] = a[j * n + i] = 0.5 * a[i * n + j] + 0.5 * a[j * n + i];
}

/// a ← L with L Lᵀ = the symmetric part of a; all NaN (but the zeros above) if that is not positive definite.
void cholesky(double* a, Index n) {
  symmetrize(a, n);
  bool positive = true;
  for (Index i = 0; i < n; ++i) {
    double* row = a + i * n;
    for (Index j = 0; j < i; ++j) row[j] = (row[j] - dot(row, a + j * n, j)) / a[j * n + j];
    const double pivot = row[i] - dot(row, row, i);
    positive = positive && pivot > 0;
    row[i] = std::sqrt(pivot);
    std::fill(row + i + 1, row + n, 0.0);
  }
  if (positive) return;
  for (Index i = 0; i < n; ++i) std::fill(a + i * n, a + i * n + i + 1, nan);
}

/// b ← x with op(a) x = b; b is n × k.
void triangular_solve(const double* a, double* b, Index n, Index k, bool lower, bool transposed, bool unit) {
  const bool forward = lower != transposed;
  for (Index step = 0; step < n; ++step) {
    const Index i = forward ? step : n - 1 - step;
    double* row = b + i * k;
    for (Index before = 0; before < step; ++before) {
      const Index j = forward ? before : n - 1 - before;
      add_to(row, -(transposed ? a[j * n + i] : a[i * n + j]), b + j * k, k);
    }
    if (unit) continue;
    for (Index c = 0; c < k; ++c) row[c] /= a[i * n + i];
  }
}

/// a ← L and U in one, with rows of a exchanged: row i of L U is row permutation[i] of a. The pivot is the first largest element.
void lu(double* a, Index m, Index n, std::int32_t* pivots, std::int32_t* permutation) {
  std::iota(permutation, permutation + m, 0);
  for (Index k = 0; k < std::min(m, n); ++k) {
    Index pivot = k;
    for (Index i = k + 1; i < m; ++i)
      if (std::fabs(a[i * n + k]) > std::fabs(a[pivot * n + k])) pivot = i;
    pivots[k] = static_cast<std::int32_t>(pivot);
    if (pivot != k) {
      std::swap_ranges(a + k * n, a + (k + 1) * n, a + pivot * n);
      std::swap(permutation[k], permutation[pivot]);
    }
    if (a[k * n + k] == 0) continue;  // all below are zero, too
    for (Index i = k + 1; i < m; ++i) {
      const double factor = a[i * n + k] /= a[k * n + k];
      add_to(a + i * n + k + 1, -factor, a + k * n + k + 1, n - k - 1);
    }
  }
}

/// x with a x = b (or aᵀ x = b), from a's factors.
void solve(const double* factors, const std::int32_t* permutation, const double* b, double* x, Index n, Index k, bool transposed) {
  const auto row_of = [&](Index i) { return std::clamp<Index>(permutation[i], 0, n - 1); };
  if (!transposed) {
    for (Index i = 0; i < n; ++i) std::copy_n(b + row_of(i) * k, k, x + i * k);
    triangular_solve(factors, x, n, k, true, false, true);
    triangular_solve(factors, x, n, k, false, false, false);
    return;
  }
  Vec<double> y(b, b + n * k);
  triangular_solve(factors, y.data(), n, k, false, true, false);
  triangular_solve(factors, y.data(), n, k, true, true, true);
  std::fill_n(x, n * k, 0.0);
  for (Index i = 0; i < n; ++i) std::copy_n(y.data() + i * k, k, x + row_of(i) * k);
}

/// A Householder reflection H = I − factor v vᵀ with v[0] = 1 and H x = (beta, 0, …). x becomes v; x[0] is left as beta in the result.
struct Reflection {
  double factor, beta;
};
Reflection reflect(double* x, Index n, Index stride) {
  double below = 0;
  for (Index i = 1; i < n; ++i) below += x[i * stride] * x[i * stride];
  const double head = n > 0 ? x[0] : 0;
  if (below == 0) return {0, head};
  const double beta = -std::copysign(std::sqrt(head * head + below), head);
  for (Index i = 1; i < n; ++i) x[i * stride] /= head - beta;
  return {(beta - head) / beta, beta};
}

/// a (m × n, destroyed) = q r with LAPACK's signs: a diagonal element of r has the sign opposite to what was above it. q is m × k, r k × n.
void qr(double* a, Index m, Index n, Index k, double* q, double* r) {
  const double factor = scale_of(a, m * n);
  if (factor != 0) scale(a, factor, m * n);
  const Index steps = std::min(m, n);
  Vec<Reflection> reflections;
  Vec<double> sums(static_cast<std::size_t>(std::max(n, k)));
  // rows ← H rows, for columns from … of a matrix with that many in a row; v stands in column j of a.
  const auto apply = [&](Index j, double* rows, Index width, Index from) {
    const double f = reflections[static_cast<std::size_t>(j)].factor;
    const Index count = width - from;
    if (f == 0 || count <= 0) return;
    std::copy_n(rows + j * width + from, count, sums.data());
    for (Index i = j + 1; i < m; ++i) add_to(sums.data(), a[i * n + j], rows + i * width + from, count);
    add_to(rows + j * width + from, -f, sums.data(), count);
    for (Index i = j + 1; i < m; ++i) add_to(rows + i * width + from, -f * a[i * n + j], sums.data(), count);
  };
  for (Index j = 0; j < steps; ++j) {
    reflections.push_back(reflect(a + j * n + j, m - j, n));
    apply(j, a, n, j + 1);
  }
  std::fill_n(r, k * n, 0.0);
  for (Index i = 0; i < steps; ++i) {
    r[i * n + i] = reflections[static_cast<std::size_t>(i)].beta;
    std::copy(a + i * n + i + 1, a + (i + 1) * n, r + i * n + i + 1);
  }
  if (factor != 0) scale(r, 1 / factor, k * n);
  std::fill_n(q, m * k, 0.0);
  for (Index i = 0; i < k; ++i) q[i * k + i] = 1;
  for (Index j = steps; j-- > 0;) apply(j, q, k, j);
}

/// Symmetric a (n × n) → diagonal d and off-diagonal e of Q a Qᵀ; a ← Q, its rows the new basis. Householder's reduction.
void tridiagonalize(double* a, Index n, double* d, double* e) {
  Vec<double> v(static_cast<std::size_t>(n)), w(v), vectors(static_cast<std::size_t>(n * n)), factors(v);
  for (Index k = 0; k + 2 < n; ++k) {
    const Index count = n - k - 1;
    double* rest = a + (k + 1) * n + k + 1;
    for (Index i = 0; i < count; ++i) v[static_cast<std::size_t>(i)] = a[(k + 1 + i) * n + k];
    const Reflection h = reflect(v.data(), count, 1);
    v[0] = 1;
    e[k] = h.beta;
    factors[static_cast<std::size_t>(k)] = h.factor;
    std::copy_n(v.data(), count, vectors.data() + k * n);
    if (h.factor == 0) continue;
    for (Index i = 0; i < count; ++i) w[static_cast<std::size_t>(i)] = h.factor * dot(rest + i * n, v.data(), count);
    add_to(w.data(), -0.5 * h.factor * dot(w.data(), v.data(), count), v.data(), count);
    for (Index i = 0; i < count; ++i) {
      add_to(rest + i * n, -v[static_cast<std::size_t>(i)], w.data(), count);
      add_to(rest + i * n, -w[static_cast<std::size_t>(i)], v.data(), count);
    }
  }
  for (Index i = 0; i < n; ++i) d[i] = a[i * n + i];
  if (n > 1) e[n - 2] = a[(n - 1) * n + n - 2];
  std::fill_n(a, n * n, 0.0);
  for (Index i = 0; i < n; ++i) a[i * n + i] = 1;
  // Q = H₀ H₁ … applied to the unit vectors, kept transposed: each reflection acts along rows.
  for (Index k = n - 3; k >= 0; --k) {
    const double f = factors[static_cast<std::size_t>(k)];
    if (f == 0) continue;
    const Index count = n - k - 1;
    const double* u = vectors.data() + k * n;
    for (Index i = k + 1; i < n; ++i) add_to(a + i * n + k + 1, -f * dot(a + i * n + k + 1, u, count), u, count);
  }
}

/// Eigenvalues of the tridiagonal matrix (d, e) into d; the rows of z are rotated along, if there are any. Implicit QL steps with
/// Wilkinson's shift (Bowdler, Martin, Reinsch and Wilkinson 1968). False if they do not converge.
bool diagonalize(double* d, double* e, Index n, double* z) {
  if (n > 0) e[n - 1] = 0;
  for (Index l = 0; l < n; ++l) {
    for (int round = 0;; ++round) {
      Index m = l;
      while (m + 1 < n && std::fabs(e[m]) > epsilon * (std::fabs(d[m]) + std::fabs(d[m + 1]))) ++m;
      if (m == l) break;
      if (round == 60) return false;
      const double half = (d[l + 1] - d[l]) / (2 * e[l]);
      double g = d[m] - d[l] + e[l] / (half + std::copysign(std::hypot(half, 1.0), half));
      double s = 1, c = 1, moved = 0;
      Index i = m - 1;
      for (; i >= l; --i) {
        const double f = s * e[i], b = c * e[i], r = std::hypot(f, g);
        e[i + 1] = r;
        if (r == 0) {
          d[i + 1] -= moved;
          e[m] = 0;
          break;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - moved;
        const double t = (d[i] - g) * s + 2 * c * b;
        moved = s * t;
        d[i + 1] = g + moved;
        g = c * t - b;
        if (z) rotate(z + i * n, z + (i + 1) * n, c, s, n);
      }
      if (i >= l) continue;
      d[l] -= moved;
      e[l] = g;
      e[m] = 0;
    }
  }
  return true;
}

/// Eigenvalues of the symmetric part of a (destroyed), ascending; eigenvectors as the columns of v, unless null. The first element of
/// an eigenvector that is no smaller than 0.37 of its largest is positive: a sign that rounding does not turn where elements are equal.
void eigh(double* a, Index n, double* values, double* v) {
  symmetrize(a, n);
  const double factor = scale_of(a, n * n);
  scale(a, factor, n * n);
  Vec<double> d(static_cast<std::size_t>(n + 1)), e(static_cast<std::size_t>(n + 1));
  if (factor != 0) tridiagonalize(a, n, d.data(), e.data());
  if (factor == 0 || !diagonalize(d.data(), e.data(), n, v ? a : nullptr)) {
    std::fill_n(values, n, nan);
    if (v) std::fill_n(v, n * n, nan);
    return;
  }
  Vec<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](Index i, Index j) { return d[static_cast<std::size_t>(i)] < d[static_cast<std::size_t>(j)]; });
  for (Index j = 0; j < n; ++j) {
    const Index from = order[static_cast<std::size_t>(j)];
    values[j] = d[static_cast<std::size_t>(from)] / factor;
    if (!v) continue;
    const double* row = a + from * n;
    double most = 0;
    for (Index i = 0; i < n; ++i) most = std::max(most, std::fabs(row[i]));
    Index first = 0;
    while (std::fabs(row[first]) < 0.37 * most) ++first;
    const double sign = row[first] < 0 ? -1 : 1;
    for (Index i = 0; i < n; ++i) v[i * n + j] = sign * row[i];
  }
}

/// Orthonormal rows from the first `done` of them, n to a row: unit vectors made orthogonal to all before.
void complete_rows(double* rows, Index done, Index count, Index n) {
  for (Index unit = 0; done < count && unit < n; ++unit) {
    double* row = rows + done * n;
    std::fill_n(row, n, 0.0);
    row[unit] = 1;
    for (int twice = 0; twice < 2; ++twice)
      for (Index j = 0; j < done; ++j) add_to(row, -dot(rows + j * n, row, n), rows + j * n, n);
    const double length = std::sqrt(dot(row, row, n));
    if (length < 0.5 / std::sqrt(static_cast<double>(n))) continue;  // some unit vector stands out further than that
    scale(row, 1 / length, n);
    ++done;
  }
}

/// Singular values of a (m × n, m ≥ n, destroyed), descending; u is m × (full ? m : n) and vt n × n, unless null. A QR step, then
/// rotations of pairs of rows of r until all are orthogonal (Hestenes 1958; Drmač and Veselić 2008).
void tall_svd(double* a, Index m, Index n, double* u, Index u_columns, double* values, double* vt) {
  const double factor = scale_of(a, m * n);
  if (factor == 0) {
    std::fill_n(values, n, nan);
    if (u) std::fill_n(u, m * u_columns, nan), std::fill_n(vt, n * n, nan);
    return;
  }
  scale(a, factor, m * n);
  Vec<double> q(static_cast<std::size_t>(m * u_columns)), r(static_cast<std::size_t>(u_columns * n)), g(static_cast<std::size_t>(n * n));
  qr(a, m, n, u_columns, q.data(), r.data());
  for (Index i = 0; i < n; ++i) g[static_cast<std::size_t>(i * n + i)] = 1;
  const double tolerance = epsilon * std::sqrt(static_cast<double>(n));
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (Index i = 0; i < n; ++i)
      for (Index j = i + 1; j < n; ++j) {
        double *x = r.data() + i * n, *y = r.data() + j * n;
        const double xx = dot(x, x, n), yy = dot(y, y, n), xy = dot(x, y, n);
        if (std::fabs(xy) <= tolerance * std::sqrt(xx) * std::sqrt(yy)) continue;
        turned = true;
        const double half = (yy - xx) / (2 * xy);
        const double t = std::copysign(1 / (std::fabs(half) + std::hypot(half, 1.0)), half);
        const double c = 1 / std::hypot(t, 1.0), s = c * t;
        rotate(x, y, c, s, n);
        rotate(g.data() + i * n, g.data() + j * n, c, s, n);
      }
  }
  Vec<double> lengths(static_cast<std::size_t>(n));
  Vec<Index> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  for (Index i = 0; i < n; ++i) lengths[static_cast<std::size_t>(i)] = std::sqrt(dot(r.data() + i * n, r.data() + i * n, n));
  std::stable_sort(order.begin(), order.end(),
                   [&](Index i, Index j) { return lengths[static_cast<std::size_t>(i)] > lengths[static_cast<std::size_t>(j)]; });
  Index rank = 0;
  for (Index k = 0; k < n; ++k) {
    const Index i = order[static_cast<std::size_t>(k)];
    const double length = lengths[static_cast<std::size_t>(i)];
    values[k] = length / factor;
    if (!u) continue;
    if (length > 0) {
      ++rank;
      for (Index c = 0; c < n; ++c) vt[k * n + c] = r[static_cast<std::size_t>(i * n + c)] / length;
    }
    for (Index row = 0; row < m; ++row) u[row * u_columns + k] = dot(q.data() + row * u_columns, g.data() + i * n, n);
  }
  if (!u) return;
  complete_rows(vt, rank, n, n);
  for (Index row = 0; row < m; ++row) std::copy_n(q.data() + row * u_columns + n, u_columns - n, u + row * u_columns + n);
}

void transpose(const double* a, Index m, Index n, double* t) {
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) t[j * m + i] = a[i * n + j];
}

/// Singular value decomposition of a (m × n, destroyed): a wide matrix by way of its transpose.
void svd(double* a, Index m, Index n, bool full, double* u, double* values, double* vt) {
  if (m >= n) return tall_svd(a, m, n, u, full ? m : n, values, vt);
  const Index k = full ? n : m;
  Vec<double> t(static_cast<std::size_t>(m * n)), v(static_cast<std::size_t>(n * k)), ut(static_cast<std::size_t>(m * m));
  transpose(a, m, n, t.data());
  tall_svd(t.data(), n, m, u ? v.data() : nullptr, k, values, ut.data());
  if (!u) return;
  transpose(v.data(), n, k, vt);
  transpose(ut.data(), m, m, u);
}

/// b ← x with T x = b, T having `below`[i] at (i, i − 1), `d`[i] at (i, i) and `above`[i] at (i, i + 1). Elimination with exchanges of
/// neighbouring rows.
void tridiagonal_solve(const double* below, const double* diagonal, const double* above, double* b, Index n, Index k) {
  Vec<double> d(diagonal, diagonal + n), u(above, above + n), far(static_cast<std::size_t>(n));
  for (Index i = 0; i + 1 < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    double *x = b + i * k, *y = x + k;
    double l = below[i + 1];
    if (std::fabs(d[at]) < std::fabs(l)) {
      std::swap(d[at], l);
      std::swap(u[at], d[at + 1]);
      if (i + 2 < n) std::swap(far[at], u[at + 1]);
      std::swap_ranges(x, x + k, y);
    }
    if (l == 0) continue;
    const double factor = l / d[at];
    d[at + 1] -= factor * u[at];
    if (i + 2 < n) u[at + 1] -= factor * far[at];
    add_to(y, -factor, x, k);
  }
  for (Index i = n - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    double* x = b + i * k;
    if (i + 1 < n) add_to(x, -u[at], x + k, k);
    if (i + 2 < n) add_to(x, -far[at], x + 2 * k, k);
    for (Index c = 0; c < k; ++c) x[c] /= d[at];
  }
}

/// The operands and results of one matrix after the other, as f64.
class Work {
 public:
  Work(DType dtype, const void* const* operands, void* const* results) : wide_(dtype == DType::f64), operands_(operands), results_(results) {}
  /// Operand i of matrix `at`, `n` elements of it, as a copy.
  double* copy(std::size_t i, Index at, Index n) {
    double* to = room(i, n);
    if (wide_) std::copy_n(static_cast<const double*>(operands_[i]) + at * n, n, to);
    else std::copy_n(static_cast<const float*>(operands_[i]) + at * n, n, to);
    return to;
  }
  double* room(std::size_t i, Index n) {
    rooms_[i].resize(static_cast<std::size_t>(n) + 1);  // never null
    return rooms_[i].data();
  }
  void put(std::size_t i, Index at, const double* from, Index n) {
    if (!results_[i]) return;
    if (wide_) std::copy_n(from, n, static_cast<double*>(results_[i]) + at * n);
    else std::transform(from, from + n, static_cast<float*>(results_[i]) + at * n, [](double x) { return static_cast<float>(x); });
  }

 private:
  bool wide_;
  const void* const* operands_;
  void* const* results_;
  Vec<double> rooms_[8];
};

}  // namespace vt::detail::linalg_kernels

namespace vt::detail {

std::int64_t LinalgSpec::operations() const {
  const std::int64_t least = std::min(m, n), cube = m * n * least;
  switch (op) {
    case Op::cholesky: return cube / 3;
    case Op::triangular_solve: return n * n * columns;
    case Op::lu: return cube;
    case Op::solve: return (factored ? 0 : cube) + 2 * n * n * columns;
    case Op::qr: return 4 * cube;
    case Op::tridiagonal_solve: return 8 * n * columns;
    default: return 20 * cube;
  }
}

std::size_t LinalgSpec::operands() const {
  if (op == Op::solve) return factored ? 4 : 2;
  return op == Op::triangular_solve ? 2 : op == Op::tridiagonal_solve ? 4 : 1;
}

LinalgSpec linalg_spec(const GraphBody& g, const Equation& e) {
  LinalgSpec s;
  s.op = e.op;
  const Aval& a = g.aval(e.inputs[0]);
  s.dtype = a.dtype;
  const std::size_t own = e.op == Op::tridiagonal_solve ? 1 : 2, rank = a.shape.size();
  s.batch = 1;
  for (std::size_t i = 0; i + own < rank; ++i) s.batch *= a.shape[i];
  s.n = a.shape[rank - 1];
  s.m = own == 2 ? a.shape[rank - 2] : s.n;
  s.factored = e.op == Op::solve && e.inputs.size() == 4;
  if (e.inputs.size() > 1) s.columns = g.aval(e.inputs[e.inputs.size() - 1]).shape.back();
  if (e.op == Op::triangular_solve) {
    const auto& p = e.as<TriangularParams>();
    s.lower = p.lower, s.transposed = p.transposed, s.unit_diagonal = p.unit_diagonal;
  }
  if (e.op == Op::solve) s.transposed = e.as<SolveParams>().transposed;
  if (e.op == Op::qr || e.op == Op::eigh || e.op == Op::svd) {
    const auto& p = e.as<DecompositionParams>();
    s.full = p.full, s.vectors = p.vectors;
  }
  return s;
}

void run_linalg(const LinalgSpec& s, const void* const* operands, void* const* results, std::int64_t begin, std::int64_t end) {
  using namespace linalg_kernels;
  Work w(s.dtype, operands, results);
  const Index m = s.m, n = s.n, k = std::min(m, n), size = m * n, b_size = n * s.columns;
  Vec<std::int32_t> pivots(static_cast<std::size_t>(k)), permutation(static_cast<std::size_t>(m));
  for (Index at = begin; at < end; ++at) {
    double* a = w.copy(0, at, s.op == Op::tridiagonal_solve ? n : size);
    switch (s.op) {
      case Op::cholesky:
        cholesky(a, n);
        w.put(0, at, a, size);
        break;
      case Op::triangular_solve: {
        double* b = w.copy(1, at, b_size);
        triangular_solve(a, b, n, s.columns, s.lower, s.transposed, s.unit_diagonal);
        w.put(0, at, b, b_size);
        break;
      }
      case Op::lu:
        lu(a, m, n, pivots.data(), permutation.data());
        w.put(0, at, a, size);
        if (results[1]) std::copy_n(pivots.data(), k, static_cast<std::int32_t*>(results[1]) + at * k);
        if (results[2]) std::copy_n(permutation.data(), m, static_cast<std::int32_t*>(results[2]) + at * m);
        break;
      case Op::solve: {
        double *b = w.copy(s.factored ? 3 : 1, at, b_size), *x = w.room(4, b_size);
        if (s.factored) {
          a = w.copy(1, at, size);
          std::copy_n(static_cast<const std::int32_t*>(operands[2]) + at * n, n, permutation.data());
        } else {
          lu(a, n, n, pivots.data(), permutation.data());
        }
        solve(a, permutation.data(), b, x, n, s.columns, s.transposed);
        w.put(0, at, x, b_size);
        break;
      }
      case Op::qr: {
        const Index between = s.full ? m : k;
        double *q = w.room(1, m * between), *r = w.room(2, between * n);
        qr(a, m, n, between, q, r);
        w.put(0, at, q, m * between);
        w.put(1, at, r, between * n);
        break;
      }
      case Op::eigh: {
        double *values = w.room(1, n), *v = s.vectors ? w.room(2, size) : nullptr;
        eigh(a, n, values, v);
        w.put(0, at, values, n);
        if (v) w.put(1, at, v, size);
        break;
      }
      case Op::svd: {
        const Index left = s.full ? m : k, right = s.full ? n : k;
        double *u = s.vectors ? w.room(1, m * left) : nullptr, *values = w.room(2, k), *vt = w.room(3, right * n);
        svd(a, m, n, s.full, u, values, vt);
        w.put(s.vectors ? 1 : 0, at, values, k);
        if (!u) break;
        w.put(0, at, u, m * left);
        w.put(2, at, vt, right * n);
        break;
      }
      default: {  // tridiagonal_solve
        double *d = w.copy(1, at, n), *above = w.copy(2, at, n), *b = w.copy(3, at, b_size);
        tridiagonal_solve(a, d, above, b, n, s.columns);
        w.put(0, at, b, b_size);
      }
    }
  }
}

}  // namespace vt::detail
