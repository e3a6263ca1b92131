// Inner loops of linear algebra on rows in memory: for floats and doubles in vectors of the
// machine's width, for complex numbers plain.
#pragma once

#include <cmath>

#include "matrix_vectors.hpp"

namespace vt::detail::simd_rows {

/// A complex number whose products are four multiplications, whatever flags say of infinities.
struct Complex {
  double re = 0, im = 0;
  Complex() = default;
  Complex(double r, double i = 0) : re(r), im(i) {}
};
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator-(Complex a) { return {-a.re, -a.im}; }
inline Complex operator*(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/// By the larger part of the divisor (Smith 1962), so that nothing overflows on the way.
inline Complex operator/(Complex a, Complex b) {
  if (std::fabs(b.re) >= std::fabs(b.im)) {
    if (b.im == 0) return {a.re / b.re, a.im / b.re};
    const double r = b.im / b.re, d = b.re + b.im * r;
    return {(a.re + a.im * r) / d, (a.im - a.re * r) / d};
  }
  const double r = b.re / b.im, d = b.im + b.re * r;
  return {(a.re * r + a.im) / d, (a.im * r - a.re) / d};
}
inline bool operator==(Complex a, Complex b) { return a.re == b.re && a.im == b.im; }
inline double conj(double x) { return x; }
inline float conj(float x) { return x; }
inline Complex conj(Complex x) { return {x.re, -x.im}; }
inline double real(double x) { return x; }
inline float real(float x) { return x; }
inline double real(Complex x) { return x.re; }
inline double imag(double) { return 0; }
inline double imag(Complex x) { return x.im; }
inline double size(double x) { return std::fabs(x); }
inline double size(Complex x) { return std::hypot(x.re, x.im); }
inline double square(double x) { return x * x; }
inline double square(Complex x) { return x.re * x.re + x.im * x.im; }

/// A matrix in memory: element (i, j) at data[i · row + j · column], conjugated if said so.
template <class T>
struct View {
  const T* data;
  Index row, column;
  bool conjugate = false;
};
template <class T>
View<T> rows_of(const T* a, Index width) {
  return {a, width, 1};
}
/// The conjugate transpose.
template <class T>
View<T> adjoint(const T* a, Index width) {
  return {a, 1, width, true};
}
template <class T>
View<T> transposed(const T* a, Index width) {
  return {a, 1, width};
}
/// Of rows i and j: (x, y) ← (c x − s y, s x + c y)
struct Rotation {
  Index i, j;
  double c, s;
};

/// What each machine has of its own, for float and double; for Complex it is the same everywhere.
template <class T>
struct Loops {
  T (*dot)(const T*, const T*, Index);
  void (*add_to)(T*, T, const T*, Index);
  T (*add_two)(T*, T, const T*, T, const T*, const T*, Index);
  void (*add_on)(T*, T, const T*, T*, T, Index);
  void (*row_dots)(const T*, Index, Index, const T*, Index, T*);
  void (*add_rows)(T*, const T*, const T*, Index, Index, Index);
  void (*add_to_rows)(T*, Index, Index, const T*, Index, const T*, Index);
  void (*rotate)(T*, Index, const Rotation*, Index, bool, Index);
  void (*reflect)(T*, Index, const T*, T, Index, Index);
  Index (*largest)(const T*, Index);
  T (*extent)(const T*, Index);
  void (*divide)(T*, T, Index);
  void (*multiply)(T*, T, Index);
  void (*turn)(const T*, Index, Index, Index, T*, Index);
  void (*symmetrize)(T*, Index);
};
template <class T>
const Loops<T>& loops();
template <>
const Loops<Complex>& loops<Complex>();

/// Σ x y
template <class T>
T dot(const T* x, const T* y, Index n) {
  return loops<T>().dot(x, y, n);
}
/// y += a x
template <class T>
void add_to(T* y, T a, const T* x, Index n) {
  loops<T>().add_to(y, a, x, n);
}
/// y += a x + b z, and then Σ y w: what a reduction to few diagonals does to a row, on one way
/// through it.
template <class T>
T add_two(T* y, T a, const T* x, T b, const T* z, const T* w, Index n) {
  return loops<T>().add_two(y, a, x, b, z, w, n);
}
/// y += a x, then z += b y.
template <class T>
void add_on(T* y, T a, const T* x, T* z, T b, Index n) {
  loops<T>().add_on(y, a, x, z, b, n);
}
/// y[r] = Σ a[r · step + i] x[i] of `rows` rows
template <class T>
void row_dots(const T* a, Index step, Index rows, const T* x, Index n, T* y) {
  loops<T>().row_dots(a, step, rows, x, n, y);
}
/// y += Σ factors[r] (row r of a)
template <class T>
void add_rows(T* y, const T* factors, const T* a, Index step, Index rows, Index n) {
  loops<T>().add_rows(y, factors, a, step, rows, n);
}
/// Row r of a += factors[r · factor_step] x
template <class T>
void add_to_rows(T* a, Index step, Index rows, const T* factors, Index factor_step, const T* x,
                 Index n) {
  loops<T>().add_to_rows(a, step, rows, factors, factor_step, x, n);
}
/// `count` rotations one after the other, of which each shares a row with the next: row i of one is
/// row j of the next (`down`) or the other way round. `n` elements of rows that are `width` apart.
/// (A complex row is two of doubles.)
template <class T>
void rotate(T* rows, Index width, const Rotation* rotations, Index count, bool down, Index n) {
  if (count > 0) loops<T>().rotate(rows, width, rotations, count, down, n);
}
/// Of two or three rows of n: x −= factor · v (vᵀ x), v[0] = 1. Float and double.
template <class T>
void reflect_rows(T* x, Index step, const T* v, T factor, Index rows, Index n) {
  loops<T>().reflect(x, step, v, factor, rows, n);
}
/// The place of the first largest |x[i]|; NaN counts only in the first place.
template <class T>
Index largest(const T* x, Index n) {
  return loops<T>().largest(x, n);
}
/// The largest |x[i]|, or NaN if an element is not finite. Float and double.
template <class T>
T extent(const T* x, Index n) {
  return loops<T>().extent(x, n);
}
/// x /= a
template <class T>
void divide(T* x, T a, Index n) {
  loops<T>().divide(x, a, n);
}
/// x *= a
template <class T>
void multiply(T* x, T a, Index n) {
  loops<T>().multiply(x, a, n);
}
/// to[j · to_step + i] = from[i · from_step + j] of m rows of n
template <class T>
void turn(const T* from, Index from_step, Index m, Index n, T* to, Index to_step) {
  loops<T>().turn(from, from_step, m, n, to, to_step);
}
/// a ← its symmetric (Hermitian) part
template <class T>
void symmetrize(T* a, Index n) {
  loops<T>().symmetrize(a, n);
}

/// c (m × n, `step` to a row) += sign · a b, sums over k.
void multiply_add(float* c, Index step, double sign, View<float> a, View<float> b, Index m, Index n,
                  Index k);
void multiply_add(double* c, Index step, double sign, View<double> a, View<double> b, Index m,
                  Index n, Index k);
void multiply_add(Complex* c, Index step, double sign, View<Complex> a, View<Complex> b, Index m,
                  Index n, Index k);
/// At most 4 rows of n: row r ← (row r − Σ over q < r of t[4 r + q] (row q)) · t[5 r]. `step` may
/// be negative.
void substitute(const float* t, Index rows, float* b, Index step, Index n);
void substitute(const double* t, Index rows, double* b, Index step, Index n);
void substitute(const Complex* t, Index rows, Complex* b, Index step, Index n);

}  // namespace vt::detail::simd_rows
