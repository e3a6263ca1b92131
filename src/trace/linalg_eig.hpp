// Eigenvalues of one matrix without symmetry in memory: Hessenberg's and Schur's forms, and the vectors of triangular ones.
#pragma once

#include "linalg_factors.hpp"

namespace vt::detail::linalg_kernels {

/// Powers of two by which rows and columns of a are scaled, so that they are about as long as each other (Parlett and Reinsch 1969).
inline void balance(Complex* a, Index n, double* scales) {
  std::fill_n(scales, n, 1.0);
  for (bool changed = true; changed;) {
    changed = false;
    for (Index i = 0; i < n; ++i) {
      double column = 0, row = 0;
      for (Index j = 0; j < n; ++j)
        if (j != i) column += std::fabs(a[j * n + i].re) + std::fabs(a[j * n + i].im), row += std::fabs(a[i * n + j].re) + std::fabs(a[i * n + j].im);
      if (column == 0 || row == 0) continue;
      const double sum = column + row;
      double f = 1;
      while (column < row / 2) f *= 2, column *= 4;
      while (column > row * 2) f /= 2, column /= 4;
      if (f == 1 || (column + row) / f >= 0.95 * sum) continue;
      changed = true;
      scales[i] *= f;
      for (Index j = 0; j < n; ++j) a[i * n + j] = a[i * n + j] * Complex(1 / f);
      for (Index j = 0; j < n; ++j) a[j * n + i] = a[j * n + i] * Complex(f);
    }
  }
}

/// a (n × n) ← H with zeros below the first lower diagonal, a = Q H Qᴴ; the rows of q are the columns of Q.
inline void hessenberg(Complex* a, Index n, Complex* q) {
  RecycledVec<Complex> vectors = zeros<Complex>(n * n), factors = zeros<Complex>(n), v = zeros<Complex>(n), v_bar = v, w = v;
  for (Index s = 0; s + 2 < n; ++s) {
    const Index count = n - s - 1, from = s + 1;
    for (Index i = 0; i < count; ++i) v[static_cast<std::size_t>(i)] = a[(from + i) * n + s];
    const Reflection<Complex> h = reflect(v.data(), count);
    factors[static_cast<std::size_t>(s)] = h.factor;
    std::copy_n(v.data(), count, vectors.data() + s * n + from);
    conjugate(v.data(), v_bar.data(), count);
    a[from * n + s] = h.beta;
    for (Index i = 1; i < count; ++i) a[(from + i) * n + s] = 0;
    std::fill(w.begin(), w.end(), Complex());
    for (Index i = 0; i < count; ++i) add_to(w.data(), v_bar[static_cast<std::size_t>(i)], a + (from + i) * n + from, count);
    for (Index i = 0; i < count; ++i) add_to(a + (from + i) * n + from, -(conj(h.factor) * v[static_cast<std::size_t>(i)]), w.data(), count);
    for (Index i = 0; i < n; ++i) {
      Complex* row = a + i * n + from;
      add_to(row, -(h.factor * dot(row, v.data(), count)), v_bar.data(), count);
    }
  }
  if (!q) return;
  RecycledVec<Complex> basis = zeros<Complex>(n * n);
  product_of_reflections(vectors.data(), factors.data(), std::max<Index>(n - 2, 0), n, basis.data(), n, 1);
  transpose(basis.data(), n, n, q);
}

/// (x, y) ← (c x + s y, −s̄ x + c y), `step` apart.
inline void turn(Complex* x, Complex* y, double c, Complex s, Index n, Index step) {
  for (Index i = 0; i < n; ++i) {
    const Complex u = x[i * step], v = y[i * step];
    x[i * step] = Complex(c) * u + s * v;
    y[i * step] = Complex(c) * v - conj(s) * u;
  }
}

/// Schur's form of a Hessenberg matrix by single shifts (Francis 1961); the rows of q, if any, are turned along. False without convergence.
inline bool schur(Complex* h, Index n, Complex* q) {
  Index high = n - 1;
  for (int rounds = 0; high > 0;) {
    Index low = high;
    for (; low > 0; --low) {
      const double below = size(h[low * n + low - 1]);
      const double beside = size(h[low * n + low]) + size(h[(low - 1) * n + low - 1]);
      if (below <= epsilon<Complex> * (beside == 0 ? 1 : beside)) {
        h[low * n + low - 1] = 0;
        break;
      }
    }
    if (low == high) {
      --high;
      rounds = 0;
      continue;
    }
    if (++rounds > 300) return false;
    const Complex a = h[(high - 1) * n + high - 1], b = h[(high - 1) * n + high], c = h[high * n + high - 1], d = h[high * n + high];
    // Of the last two rows' eigenvalues the one nearer to the corner; now and then another shift, against cycles.
    const Complex half = Complex(0.5) * (a - d), product = b * c, inside = half * half + product;
    const double length = size(inside), re = std::sqrt(0.5 * (length + std::fabs(inside.re)));
    const double other = re == 0 ? 0 : 0.5 * inside.im / re;
    Complex root = inside.re >= 0 ? Complex(re, other) : Complex(std::fabs(other), std::copysign(re, inside.im));
    if (real(half * conj(root)) < 0) root = -root;
    const Complex divisor = half + root;
    Complex shift = divisor == Complex(0) ? d : d - product / divisor;
    if (rounds % 10 == 0) shift = d + Complex(size(c));
    Complex x = h[low * n + low] - shift, y = h[(low + 1) * n + low];
    for (Index k = low; k < high; ++k) {
      const double length_x = size(x), r = std::hypot(length_x, size(y));
      double cosine = 1;
      Complex sine;
      if (r > 0 && length_x == 0) cosine = 0, sine = conj(y) / Complex(size(y));
      else if (r > 0) cosine = length_x / r, sine = x / Complex(length_x) * conj(y) / Complex(r);
      const Index first = k > low ? k - 1 : k, last = q ? n : high + 1;
      turn(h + k * n + first, h + (k + 1) * n + first, cosine, sine, last - first, 1);
      if (k > low) h[(k + 1) * n + k - 1] = 0;
      const Index top = q ? 0 : low, bottom = std::min(k + 2, high) + 1;
      turn(h + top * n + k, h + top * n + k + 1, cosine, conj(sine), bottom - top, n);
      if (q) turn(q + k * n, q + (k + 1) * n, cosine, conj(sine), n, 1);
      if (k + 1 < high) x = h[(k + 1) * n + k], y = h[(k + 2) * n + k];
    }
  }
  return true;
}

/// The same of a real matrix.
template <class E>
void real_hessenberg(E* a, Index n, E* qt) {
  RecycledVec<E> vectors = zeros<E>(n * n), factors = zeros<E>(n), w = zeros<E>(n), f = w;
  for (Index s = 0; s + 2 < n; ++s) {
    const Index count = n - s - 1, from = s + 1;
    E *v = vectors.data() + s * n + from, *corner = a + from * n + from;
    for (Index i = 0; i < count; ++i) v[i] = a[(from + i) * n + s];
    const Reflection<E> h = reflect(v, count);
    factors[static_cast<std::size_t>(s)] = h.factor;
    a[from * n + s] = E(h.beta);
    for (Index i = 1; i < count; ++i) a[(from + i) * n + s] = 0;
    std::fill_n(w.data(), count, E(0));
    add_rows(w.data(), v, corner, n, count, count);
    for (Index i = 0; i < count; ++i) f[static_cast<std::size_t>(i)] = -h.factor * v[i];
    add_to_rows(corner, n, count, f.data(), 1, w.data(), count);
    row_dots(a + from, n, n, v, count, w.data());
    matrix_lanes::multiply(w.data(), -h.factor, n);
    add_to_rows(a + from, n, n, w.data(), 1, v, count);
  }
  if (!qt) return;
  RecycledVec<E> basis = zeros<E>(n * n);
  product_of_reflections(vectors.data(), factors.data(), std::max<Index>(n - 2, 0), n, basis.data(), n, 1);
  transpose(basis.data(), n, n, qt);
}

/// Real Schur form of a Hessenberg matrix by double shifts (Francis 1961): blocks of one or two rows on the diagonal. The rows of qt, if any, are
/// turned along. False without convergence.
template <class E>
bool real_schur(E* h, Index n, E* qt) {
  Index high = n - 1;
  for (int rounds = 0; high > 0;) {
    Index low = high;
    for (; low > 0; --low) {
      E& below = h[low * n + low - 1];
      const E beside = std::fabs(h[low * n + low]) + std::fabs(h[(low - 1) * n + low - 1]);
      if (std::fabs(below) <= epsilon<E> * (beside == 0 ? 1 : beside)) {
        below = 0;
        break;
      }
    }
    if (low >= high - 1) {
      high = low - 1;
      rounds = 0;
      continue;
    }
    if (++rounds > 300) return false;
    const E *last = h + high * n + high, *before = last - n - 1;
    E sum = before[0] + last[0], product = before[0] * last[0] - before[1] * last[-1];
    if (rounds % 10 == 0) {  // another shift now and then, against cycles
      const E size = std::fabs(last[-1]) + std::fabs(before[-1]);
      sum = E(1.5) * size + 2 * last[0], product = (size + last[0]) * (size / 2 + last[0]) + size * size / 2;
    }
    const E *first = h + low * n + low, *next = first + n;
    double x = first[0] * (first[0] - sum) + first[1] * next[0] + product, y = next[0] * (first[0] + next[1] - sum), z = next[0] * next[n + 1];
    for (Index k = low; k < high; ++k) {
      const Index rows = std::min<Index>(3, high - k + 1);
      if (k > low) x = h[k * n + k - 1], y = h[(k + 1) * n + k - 1], z = rows > 2 ? h[(k + 2) * n + k - 1] : 0;
      const double top = std::max({std::fabs(x), std::fabs(y), std::fabs(z)});
      if (top == 0) continue;
      x /= top, y /= top, z /= top;
      if (y == 0 && z == 0) continue;
      // In f64, so that of f32 no error comes in but that of v itself, and the factor makes up for it.
      const double beta = -std::copysign(std::sqrt(x * x + y * y + z * z), x);
      const E v[3] = {1, static_cast<E>(y / (x - beta)), static_cast<E>(z / (x - beta))};
      const E factor = static_cast<E>(2 / (1 + square(v[1]) + square(v[2])));
      if (k > low) {
        h[k * n + k - 1] = static_cast<E>(beta * top);
        for (Index i = 1; i < rows; ++i) h[(k + i) * n + k - 1] = 0;
      }
      matrix_lanes::reflect_rows(h + k * n + k, n, v, factor, rows, (qt ? n : high + 1) - k);
      E* column = h + (qt ? 0 : low) * n + k;
      for (Index i = std::min(k + 4, high + 1) - (qt ? 0 : low); i > 0; --i, column += n) {
        const E t = factor * (column[0] + v[1] * column[1] + (rows > 2 ? v[2] * column[2] : 0));
        column[0] -= t;
        column[1] -= v[1] * t;
        if (rows > 2) column[2] -= v[2] * t;
      }
      if (qt) matrix_lanes::reflect_rows(qt + k * n, n, v, factor, rows, n);
    }
  }
  return true;
}

/// A unitary turn of places `at` and at + 1: its first column is (head, below).
struct Turn {
  Index at;
  Complex head;
  double below;
};
/// Blocks of two rows of a real Schur form in a become triangular, with exactly conjugate or real eigenvalues; of the rest of a what vectors want.
inline Vec<Turn> made_triangular(Complex* a, Index n, bool vectors) {
  Vec<Turn> turns;
  for (Index k = 0; k + 1 < n; ++k) {
    Complex *row = a + k * n, *next = row + n;
    const double c = next[k].re, half = 0.5 * (row[k].re - next[k + 1].re), d = next[k + 1].re, product = row[k + 1].re * c;
    if (c == 0) continue;
    const double inside = half * half + product;
    const Complex z = inside < 0 ? Complex(half, std::sqrt(-inside)) : Complex(half + std::copysign(std::sqrt(inside), half));
    const Complex one = Complex(d) + z;
    const Complex two = inside < 0 ? conj(one) : Complex(z.re == 0 ? d : d - product / z.re);
    const double length = std::hypot(size(z), c);
    const Turn t = {k, z / Complex(length), c / length};
    if (vectors) {
      turns.push_back(t);
      for (Index j = k; j < n; ++j) {
        const Complex x = row[j], y = next[j];
        row[j] = conj(t.head) * x + Complex(t.below) * y;
        next[j] = t.head * y - Complex(t.below) * x;
      }
      for (Index i = 0; i < k + 2; ++i) {
        Complex* at = a + i * n + k;
        const Complex x = at[0], y = at[1];
        at[0] = x * t.head + y * Complex(t.below);
        at[1] = y * conj(t.head) - x * Complex(t.below);
      }
    }
    row[k] = one;
    next[k + 1] = two;
    next[k] = 0;
    ++k;
  }
  return turns;
}

/// The matrix of a triangular form's eigenvectors, one in each row of x; `a` is upper triangular. Rows for which `skip` says so are left out.
inline void triangular_vectors(const Complex* a, Index n, Complex* x, const bool* skip) {
  double most = 0;
  for (Index i = 0; i < n * n; ++i) most = std::max({most, std::fabs(a[i].re), std::fabs(a[i].im)});
  const double least = std::max(epsilon<Complex> * most, std::numeric_limits<double>::min());
  for (Index j = 0; j < n; ++j) {
    if (skip[j]) continue;
    // (T − λ) x = 0 from below; of equal eigenvalues the divisor is a rounding error.
    Complex* own = x + j * n;
    const Complex lambda = a[j * n + j];
    own[j] = 1;
    for (Index i = j; i-- > 0;) {
      const Complex sum = dot(a + i * n + i + 1, own + i + 1, j - i);
      Complex divisor = a[i * n + i] - lambda;
      if (std::fabs(divisor.re) + std::fabs(divisor.im) < least) divisor = least;
      own[i] = -sum / divisor;
      if (std::fabs(own[i].re) + std::fabs(own[i].im) < 1e150) continue;
      for (Index k = i; k <= j; ++k) own[k] = own[k] * Complex(1e-150);
    }
  }
}

/// Eigenvalues of a (n × n, destroyed), and the eigenvectors of length 1 as the columns of v, unless null; their largest element is real and
/// positive. T: of the matrix, all Complex where it is not real; eigenvalues and vectors that are real or conjugate to each other are so exactly.
template <class T>
void eig(Complex* a, Index n, Complex* values, Complex* v) {
  using E = Real<T>;
  constexpr bool is_real = !std::is_same_v<T, Complex>;
  const double factor = scale_of(a, n * n);
  scale(a, factor, n * n);
  const Index size_of_all = v ? n * n : 0;
  RecycledVec<double> scales = zeros<double>(n);
  RecycledVec<E> qt = zeros<E>(is_real ? size_of_all : 0);
  RecycledVec<Complex> q = zeros<Complex>(is_real ? 0 : size_of_all), x = zeros<Complex>(size_of_all);
  Vec<Turn> turns;
  Vec<bool> second(static_cast<std::size_t>(n) + 1), alone(static_cast<std::size_t>(n) + 1);  // of a conjugate pair; a real one
  bool converged = factor != 0;
  if (converged) {
    balance(a, n, scales.data());
    if (is_real) {
      RecycledVec<E> h = zeros<E>(n * n);
      for (Index i = 0; i < n * n; ++i) h[static_cast<std::size_t>(i)] = static_cast<E>(a[i].re);
      real_hessenberg(h.data(), n, v ? qt.data() : nullptr);
      converged = real_schur(h.data(), n, v ? qt.data() : nullptr);
      for (Index i = 0; i < n * n; ++i) a[i] = h[static_cast<std::size_t>(i)];
      if (converged) turns = made_triangular(a, n, v != nullptr);
    } else {
      hessenberg(a, n, v ? q.data() : nullptr);
      converged = schur(a, n, v ? q.data() : nullptr);
    }
  }
  if (!converged) {
    std::fill_n(values, n, Complex(nan, nan));
    if (v) std::fill_n(v, n * n, Complex(nan, nan));
    return;
  }
  for (Index j = 0; j < n; ++j) {
    values[j] = a[j * n + j] / Complex(factor);
    alone[static_cast<std::size_t>(j)] = is_real && values[j].im == 0;
    second[static_cast<std::size_t>(j)] = is_real && !alone[static_cast<std::size_t>(j)] && j > 0 && !second[static_cast<std::size_t>(j - 1)] &&
                                          !alone[static_cast<std::size_t>(j - 1)];
  }
  if (!v) return;
  triangular_vectors(a, n, x.data(), second.data());
  if (is_real) {
    // Q is real: one product of real parts, one of imaginary ones.
    RecycledVec<E> part = zeros<E>(n * n), product = part;
    for (Index j = 0; j < n; ++j)
      for (const Turn& t : turns) {
        if (t.at > j) break;
        Complex *one = x.data() + j * n + t.at, two = one[1];
        one[1] = Complex(t.below) * one[0] + conj(t.head) * two;
        one[0] = t.head * one[0] - Complex(t.below) * two;
      }
    for (const bool imaginary : {false, true}) {
      for (Index i = 0; i < n * n; ++i)
        part[static_cast<std::size_t>(i)] = static_cast<E>(imaginary ? x[static_cast<std::size_t>(i)].im : x[static_cast<std::size_t>(i)].re);
      std::fill(product.begin(), product.end(), E(0));
      multiply_add(product.data(), n, 1, matrix_lanes::turned<E>(qt.data(), n), matrix_lanes::turned<E>(part.data(), n), n, n, n);
      for (Index i = 0; i < n * n; ++i) (imaginary ? v[i].im : v[i].re) = product[static_cast<std::size_t>(i)];
    }
  } else {
    std::fill_n(v, n * n, Complex());
    multiply_add(v, n, 1, matrix_lanes::turned<Complex>(q.data(), n), matrix_lanes::turned<Complex>(x.data(), n), n, n, n);
  }
  for (Index j = 0; j < n; ++j) {
    const bool real_one = alone[static_cast<std::size_t>(j)], copied = second[static_cast<std::size_t>(j)];
    double top = 0, squares = 0, most = -1;
    Index at = 0;
    for (Index i = 0; i < n; ++i) {
      Complex& y = v[i * n + j];
      y = copied ? conj(v[i * n + j - 1]) : y * Complex(scales[static_cast<std::size_t>(i)]);
      if (real_one) y.im = 0;
      top = std::max({top, std::fabs(y.re), std::fabs(y.im)});
    }
    if (copied) continue;
    for (Index i = 0; i < n; ++i) {
      const double part = square(v[i * n + j] / Complex(top));
      squares += part;
      if (part > most) most = part, at = i;
    }
    const Complex largest = v[at * n + j] / Complex(top), by = conj(largest) / Complex(size(largest) * top * std::sqrt(squares));
    for (Index i = 0; i < n; ++i) v[i * n + j] = v[i * n + j] * by;
    v[at * n + j].im = 0;
  }
}

}  // namespace vt::detail::linalg_kernels
