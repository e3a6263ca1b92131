// eig of one matrix in memory: Hessenberg form, Schur form, and the eigenvectors of triangular
// matrices.
#pragma once

#include "linalg_factors.hpp"

namespace vt::detail::linalg_kernels {

/// Powers of two by which rows and columns of a are scaled, so that they are about as long as each
/// other (Parlett and Reinsch 1969; with the diagonal, so that rows and columns that hardly meet
/// others stay: James, Langou and Lowery 2014). False if all are 1.
inline bool balance(Complex* a, Index n, double* scales) {
  constexpr double far = 0x1p400;
  std::fill_n(scales, n, 1.0);
  bool scaled = false;
  for (bool changed = true; changed;) {
    changed = false;
    for (Index i = 0; i < n; ++i) {
      double column = 0, row = 0;
      for (Index j = 0; j < n; ++j) {
        column += std::fabs(a[j * n + i].re) + std::fabs(a[j * n + i].im);
        row += std::fabs(a[i * n + j].re) + std::fabs(a[i * n + j].im);
      }
      if (column == 0 || row == 0) continue;
      const double sum = column + row;
      double f = 1;
      while (column < row / 2 && scales[i] * f < far) f *= 2, column *= 2, row /= 2;
      while (column > row * 2 && scales[i] * f > 1 / far) f /= 2, column /= 2, row *= 2;
      if (f == 1 || column + row >= 0.95 * sum) continue;
      changed = scaled = true;
      scales[i] *= f;
      for (Index j = 0; j < n; ++j) a[i * n + j] = a[i * n + j] * Complex(1 / f);
      for (Index j = 0; j < n; ++j) a[j * n + i] = a[j * n + i] * Complex(f);
    }
  }
  return scaled;
}

/// Is `below` perhaps a rounding error beside two elements of the diagonal of a Hessenberg matrix?
/// …
inline bool small_beside(double below, double beside, double eps) {
  return below <= eps * beside || below <= std::numeric_limits<double>::min() / epsilon<double>;
}
/// … And with what is above it, and with the diagonal's element and its distance to the one before
/// (Ahues and Tisseur 1997; sizes)?
inline bool negligible(double below, double above, double here, double apart, double eps) {
  constexpr double least = std::numeric_limits<double>::min() / epsilon<double>;
  if (below <= least) return true;
  const double ab = std::max(below, above), ba = std::min(below, above), aa = std::max(here, apart),
               bb = std::min(here, apart), s = aa + ab;
  return ba * (ab / s) <= std::max(least, eps * (bb * (aa / s)));
}
/// What is off the diagonal when an eigenvalue has taken this many steps may be as small as
/// roundings of the whole matrix, to be done with it.
constexpr int patience = 20;

/// a (n × n) ← H with zeros below the first lower diagonal, a = Q H Qᴴ; the rows of q are the
/// columns of Q.
inline void hessenberg(Complex* a, Index n, Complex* q) {
  RecycledVec<Complex> vectors = zeros<Complex>(n * n), factors = zeros<Complex>(n),
                       v = zeros<Complex>(n), v_bar = v, w = v;
  for (Index s = 0; s + 2 < n; ++s) {
    const Index count = n - s - 1, from = s + 1;
    for (Index i = 0; i < count; ++i) v[i] = a[(from + i) * n + s];
    const Reflection<Complex> h = reflect(v.data(), count);
    factors[s] = h.factor;
    std::copy_n(v.data(), count, vectors.data() + s * n + from);
    conjugate(v.data(), v_bar.data(), count);
    a[from * n + s] = h.beta;
    for (Index i = 1; i < count; ++i) a[(from + i) * n + s] = 0;
    std::fill(w.begin(), w.end(), Complex());
    for (Index i = 0; i < count; ++i) add_to(w.data(), v_bar[i], a + (from + i) * n + from, count);
    for (Index i = 0; i < count; ++i)
      add_to(a + (from + i) * n + from, -(conj(h.factor) * v[i]), w.data(), count);
    for (Index i = 0; i < n; ++i) {
      Complex* row = a + i * n + from;
      add_to(row, -(h.factor * dot(row, v.data(), count)), v_bar.data(), count);
    }
  }
  if (!q) return;
  RecycledVec<Complex> basis = zeros<Complex>(n * n);
  product_of_reflections(vectors.data(), factors.data(), std::max<Index>(n - 2, 0), n, basis.data(),
                         n, 1);
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

inline double about(Complex x) { return std::fabs(x.re) + std::fabs(x.im); }
/// Schur's form of a Hessenberg matrix by single shifts (Francis 1961); the rows of q, if any, are
/// rotated along. False without convergence.
inline bool schur(Complex* h, Index n, Complex* q) {
  double most = 0;
  for (Index i = 0; i < n * n; ++i) most = std::max(most, about(h[i]));
  const auto at = [&](Index i, Index j) -> Complex& { return h[i * n + j]; };
  Index high = n - 1, all_iterations = 0;
  for (int iterations = 0; high > 0;) {
    Index low = high;
    for (; low > 0; --low) {
      const double below = about(at(low, low - 1)), here = about(at(low, low));
      double beside = about(at(low - 1, low - 1)) + here;
      if (beside == 0)
        beside = (low > 1 ? about(at(low - 1, low - 2)) : 0) +
                 (low < high ? about(at(low + 1, low)) : 0);
      const auto rounding = [&] {
        return negligible(below, about(at(low - 1, low)), here,
                          about(at(low - 1, low - 1) - at(low, low)), epsilon<Complex>);
      };
      if (!(small_beside(below, beside, epsilon<Complex>) && rounding()) &&
          !(iterations > patience && below <= epsilon<Complex> * most))
        continue;
      at(low, low - 1) = 0;
      break;
    }
    if (low == high) {
      --high;
      iterations = 0;
      continue;
    }
    if (++all_iterations > 30 * std::max<Index>(n, 10)) return false;
    const Complex a = at(high - 1, high - 1), b = at(high - 1, high), c = at(high, high - 1),
                  d = at(high, high);
    // Of the last two rows' eigenvalues the one nearer to the corner, in numbers near 1; now and
    // then another shift, against cycles.
    Complex half = Complex(0.5) * (a - d), shift = d;
    if (const double unit = std::max({about(half), about(b), about(c)}); unit > 0) {
      half = half / Complex(unit);
      const Complex product = b / Complex(unit) * (c / Complex(unit)),
                    inside = half * half + product;
      const double length = size(inside), re = std::sqrt(0.5 * (length + std::fabs(inside.re)));
      const double other = re == 0 ? 0 : 0.5 * inside.im / re;
      Complex root = inside.re >= 0 ? Complex(re, other)
                                    : Complex(std::fabs(other), std::copysign(re, inside.im));
      if (real(half * conj(root)) < 0) root = -root;
      const Complex divisor = half + root;
      if (!(divisor == Complex(0))) shift = d - product / divisor * Complex(unit);
    }
    if (++iterations % 20 == 10) shift = at(low, low) + Complex(0.75 * size(at(low + 1, low)));
    else if (iterations % 20 == 0) shift = d + Complex(0.75 * size(c));
    Complex x = h[low * n + low] - shift, y = h[(low + 1) * n + low];
    for (Index k = low; k < high; ++k) {
      // Numbers that have lost digits have no direction: a rotation of them would be none.
      if (about(x) + about(y) < 0x1p-500) x = x * Complex(0x1p500), y = y * Complex(0x1p500);
      const double length_x = size(x), r = std::hypot(length_x, size(y));
      double cosine = 1;
      Complex sine;
      if (r < 0x1p-500) cosine = 1;
      else if (length_x < 0x1p-900) cosine = 0, sine = conj(y) / Complex(size(y));
      else cosine = length_x / r, sine = x / Complex(length_x) * conj(y) / Complex(r);
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
    factors[s] = h.factor;
    a[from * n + s] = E(h.beta);
    for (Index i = 1; i < count; ++i) a[(from + i) * n + s] = 0;
    std::fill_n(w.data(), count, E(0));
    add_rows(w.data(), v, corner, n, count, count);
    for (Index i = 0; i < count; ++i) f[i] = -h.factor * v[i];
    add_to_rows(corner, n, count, f.data(), 1, w.data(), count);
    row_dots(a + from, n, n, v, count, w.data());
    simd_rows::multiply(w.data(), -h.factor, n);
    add_to_rows(a + from, n, n, w.data(), 1, v, count);
  }
  if (!qt) return;
  RecycledVec<E> basis = zeros<E>(n * n);
  product_of_reflections(vectors.data(), factors.data(), std::max<Index>(n - 2, 0), n, basis.data(),
                         n, 1);
  transpose(basis.data(), n, n, qt);
}

/// Real Schur form of a Hessenberg matrix by double shifts (Francis 1961): blocks of one or two
/// rows on the diagonal. The rows of qt, if any, are rotated along. False without convergence.
template <class E>
bool real_schur(E* h, Index n, E* qt) {
  const double most = simd_rows::extent(h, n * n);
  const auto at = [&](Index i, Index j) -> E& { return h[i * n + j]; };
  const auto sized = [&](Index i, Index j) { return std::fabs(static_cast<double>(at(i, j))); };
  Index high = n - 1, all_iterations = 0;
  for (int iterations = 0; high > 0;) {
    Index low = high;
    for (; low > 0; --low) {
      const double below = sized(low, low - 1), here = sized(low, low);
      double beside = sized(low - 1, low - 1) + here;
      if (beside == 0)
        beside = (low > 1 ? sized(low - 1, low - 2) : 0) + (low < high ? sized(low + 1, low) : 0);
      const auto rounding = [&] {
        const double apart = std::fabs(static_cast<double>(at(low - 1, low - 1)) -
                                       static_cast<double>(at(low, low)));
        return negligible(below, sized(low - 1, low), here, apart, epsilon<E>);
      };
      if (!(small_beside(below, beside, epsilon<E>) && rounding()) &&
          !(iterations > patience && below <= epsilon<E> * most))
        continue;
      at(low, low - 1) = 0;
      break;
    }
    if (low >= high - 1) {
      high = low - 1;
      iterations = 0;
      continue;
    }
    if (++all_iterations > 30 * std::max<Index>(n, 10)) return false;
    // The shifts: both eigenvalues of the last two rows, or twice the real one that is nearer to
    // the corner; now and then others, against cycles.
    double a = at(high - 1, high - 1), b = at(high - 1, high), c = at(high, high - 1),
           d = at(high, high);
    if (++iterations % 20 == 10) {
      c = sized(low + 1, low) + sized(low + 2, low + 1), b = -0.4375 * c;
      a = d = 0.75 * c + static_cast<double>(at(low, low));
    } else if (iterations % 20 == 0) {
      c = std::fabs(c) + sized(high - 1, high - 2), b = -0.4375 * c;
      a = d = 0.75 * c + d;
    }
    // their real parts, and the imaginary part of the first
    double one = 0, two = 0, imaginary = 0;
    if (const double unit = std::fabs(a) + std::fabs(b) + std::fabs(c) + std::fabs(d); unit > 0) {
      const double by = 1 / unit;
      a *= by, b *= by, c *= by, d *= by;
      const double middle = 0.5 * (a + d), determinant = (a - middle) * (d - middle) - b * c,
                   root = std::sqrt(std::fabs(determinant));
      if (determinant >= 0) one = two = middle * unit, imaginary = root * unit;
      else
        one = two = (std::fabs(middle + root - d) <= std::fabs(middle - root - d) ? middle + root
                                                                                  : middle - root) *
                    unit;
    }
    // Where the first column of the product of both shifted matrices is nearly that of what begins
    // further below, the step begins there. By differences, which keep their digits where
    // eigenvalues are close.
    double x = 1, y = 0, z = 0;
    Index start = high - 2;
    for (;; --start) {
      const double here = at(start, start), next = at(start + 1, start + 1),
                   unit = std::fabs(here - two) + std::fabs(imaginary) + sized(start + 1, start);
      if (unit > 0) {
        const double by = 1 / unit, below = static_cast<double>(at(start + 1, start)) * by;
        x = below * static_cast<double>(at(start, start + 1)) + (here - one) * ((here - two) * by) +
            imaginary * (imaginary * by);
        y = below * (here + next - one - two);
        z = below * static_cast<double>(at(start + 2, start + 1));
      }
      if (start == low) break;
      const double around = sized(start - 1, start - 1) + std::fabs(here) + std::fabs(next);
      if (sized(start, start - 1) * (std::fabs(y) + std::fabs(z)) <=
          epsilon<E> * std::fabs(x) * around)
        break;
    }
    for (Index k = start; k < high; ++k) {
      const Index rows = std::min<Index>(3, high - k + 1);
      if (k > start)
        x = h[k * n + k - 1], y = h[(k + 1) * n + k - 1], z = rows > 2 ? h[(k + 2) * n + k - 1] : 0;
      const double top = std::max({std::fabs(x), std::fabs(y), std::fabs(z)});
      if (top == 0) continue;
      x /= top, y /= top, z /= top;
      if (y == 0 && z == 0) continue;
      // In f64, so that of f32 no error comes in but that of v itself, and the factor makes up for
      // it.
      const double beta = -std::copysign(std::sqrt(x * x + y * y + z * z), x);
      const E v[3] = {1, static_cast<E>(y / (x - beta)), static_cast<E>(z / (x - beta))};
      const E factor = static_cast<E>(2 / (1 + square(v[1]) + square(v[2])));
      if (k > start) {
        h[k * n + k - 1] = static_cast<E>(beta * top);
        for (Index i = 1; i < rows; ++i) h[(k + i) * n + k - 1] = 0;
      } else if (k > low) {
        h[k * n + k - 1] *= 1 - factor;
      }
      simd_rows::reflect_rows(h + k * n + k, n, v, factor, rows, (qt ? n : high + 1) - k);
      E* column = h + (qt ? 0 : low) * n + k;
      for (Index i = std::min(k + 4, high + 1) - (qt ? 0 : low); i > 0; --i, column += n) {
        const E t = factor * (column[0] + v[1] * column[1] + (rows > 2 ? v[2] * column[2] : 0));
        column[0] -= t;
        column[1] -= v[1] * t;
        if (rows > 2) column[2] -= v[2] * t;
      }
      if (qt) simd_rows::reflect_rows(qt + k * n, n, v, factor, rows, n);
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
/// Blocks of two rows of a real Schur form in a become triangular, with exactly conjugate or real
/// eigenvalues; of the rest of a what vectors want.
inline Vec<Turn> made_triangular(Complex* a, Index n, bool vectors) {
  Vec<Turn> turns;
  for (Index k = 0; k + 1 < n; ++k) {
    Complex *row = a + k * n, *next = row + n;
    const double c = next[k].re, half = 0.5 * (row[k].re - next[k + 1].re), d = next[k + 1].re,
                 product = row[k + 1].re * c;
    if (c == 0) continue;
    const double inside = half * half + product;
    const Complex z = inside < 0 ? Complex(half, std::sqrt(-inside))
                                 : Complex(half + std::copysign(std::sqrt(inside), half));
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

/// The matrix of a triangular form's eigenvectors, one in each row of x; `a` is upper triangular.
/// Rows for which `skip` says so are left out.
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
    scale(own, scale_of(own, j + 1), j + 1);  // floats would overflow
  }
}

/// Is a residual of `vectors`, which are columns of length 1, beyond the roundings of a?
template <class T>
bool far_off(const Complex* a, Index n, const Complex* values, const Complex* vectors) {
  RecycledVec<Complex> products = zeros<Complex>(n * n);
  multiply_add(products.data(), n, 1, rows_of(a, n), rows_of(vectors, n), n, n, n);
  RecycledVec<double> off = zeros<double>(n), columns = off;
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) {
      off[j] += about(products[i * n + j] - vectors[i * n + j] * values[j]);
      columns[j] += about(a[i * n + j]);
    }
  const double allowed =
      4 * epsilon<T> * static_cast<double>(n) * *std::max_element(columns.begin(), columns.end());
  return std::any_of(off.begin(), off.begin() + n, [&](double x) { return !(x <= allowed); });
}

/// Eigenvalues of a (n × n, destroyed), and the eigenvectors of length 1 as the columns of v,
/// unless null; their largest element is real and positive. T: of the matrix, all Complex where it
/// is not real; eigenvalues and vectors that are real or conjugate to each other are so exactly.
template <class T>
void eig(Complex* a, Index n, Complex* values, Complex* v, bool balancing = true) {
  using E = Real<T>;
  constexpr bool is_real = !std::is_same_v<T, Complex>;
  const double factor = scale_of(a, n * n);
  // a second factor; the size of a balanced matrix, times the largest scale
  double again = 1, reach = 0;
  scale(a, factor, n * n);
  const Index size_of_all = v ? n * n : 0;
  RecycledVec<double> scales = zeros<double>(n);
  RecycledVec<E> qt = zeros<E>(is_real ? size_of_all : 0);
  RecycledVec<Complex> q = zeros<Complex>(is_real ? 0 : size_of_all),
                       x = zeros<Complex>(size_of_all), whole(a, a + size_of_all);
  Vec<Turn> turns;
  // of a conjugate pair; a real one
  Vec<bool> second(static_cast<std::size_t>(n) + 1), alone(static_cast<std::size_t>(n) + 1);
  bool converged = factor != 0, balanced = false;
  std::fill_n(scales.data(), n, 1.0);
  if (converged) {
    balanced = balancing && balance(a, n, scales.data());
    if (balanced) {
      again = scale_of(a, n * n);
      reach = *std::max_element(scales.begin(), scales.begin() + n) / again;
      scale(a, again, n * n);
    }
    if (is_real) {
      RecycledVec<E> h = zeros<E>(n * n);
      for (Index i = 0; i < n * n; ++i) h[i] = static_cast<E>(a[i].re);
      real_hessenberg(h.data(), n, v ? qt.data() : nullptr);
      converged = real_schur(h.data(), n, v ? qt.data() : nullptr);
      for (Index i = 0; i < n * n; ++i) a[i] = h[i];
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
    values[j] = a[j * n + j] / Complex(again);
    alone[j] = is_real && a[j * n + j].im == 0;
    second[j] = is_real && !alone[j] && j > 0 && !second[j - 1] && !alone[j - 1];
  }
  const auto give_values = [&] {
    for (Index j = 0; j < n; ++j) values[j] = values[j] / Complex(factor);
  };
  if (!v) return give_values();
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
      for (Index i = 0; i < n * n; ++i) part[i] = static_cast<E>(imaginary ? x[i].im : x[i].re);
      std::fill(product.begin(), product.end(), E(0));
      multiply_add(product.data(), n, 1, simd_rows::transposed<E>(qt.data(), n),
                   simd_rows::transposed<E>(part.data(), n), n, n, n);
      for (Index i = 0; i < n * n; ++i) (imaginary ? v[i].im : v[i].re) = product[i];
    }
  } else {
    std::fill_n(v, n * n, Complex());
    multiply_add(v, n, 1, simd_rows::transposed<Complex>(q.data(), n),
                 simd_rows::transposed<Complex>(x.data(), n), n, n, n);
  }
  bool suspect = false;  // what is a rounding in the balanced matrix may not be one in a
  for (Index j = 0; j < n; ++j) {
    const bool real_one = alone[j], copied = second[j];
    double top = 0, squares = 0, most = -1, before = 0;
    Index at = 0;
    for (Index i = 0; i < n; ++i) {
      Complex& y = v[i * n + j];
      if (balanced) before = std::max({before, std::fabs(y.re), std::fabs(y.im)});
      y = copied ? conj(v[i * n + j - 1]) : y * Complex(scales[i]);
      if (real_one) y.im = 0;
      top = std::max({top, std::fabs(y.re), std::fabs(y.im)});
    }
    if (copied) continue;
    suspect = suspect || before * reach > 10 * top;
    for (Index i = 0; i < n; ++i) {
      const double part = square(v[i * n + j] / Complex(top));
      squares += part;
      if (part > most) most = part, at = i;
    }
    const Complex largest = v[at * n + j] / Complex(top),
                  by = conj(largest) / Complex(size(largest) * top * std::sqrt(squares));
    for (Index i = 0; i < n; ++i) v[i * n + j] = v[i * n + j] * by;
    v[at * n + j].im = 0;
  }
  if (suspect && far_off<T>(whole.data(), n, values, v)) eig<T>(whole.data(), n, values, v, false);
  give_values();
}

}  // namespace vt::detail::linalg_kernels
