// Inner loops of linear algebra on rows in memory: for doubles in vectors as wide as the machine has, for complex numbers plain.
#pragma once

#include <cmath>
#include <cstdint>

namespace vt::detail::matrix_lanes {

using Index = std::int64_t;

/// A complex number whose products are four multiplications, whatever flags say of infinities.
struct Complex {
  double re = 0, im = 0;
  Complex() = default;
  Complex(double r, double i = 0) : re(r), im(i) {}
};
inline Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
inline Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
inline Complex operator-(Complex a) { return {-a.re, -a.im}; }
inline Complex operator*(Complex a, Complex b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
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
inline Complex conj(Complex x) { return {x.re, -x.im}; }
inline double real(double x) { return x; }
inline double real(Complex x) { return x.re; }
inline double imag(double) { return 0; }
inline double imag(Complex x) { return x.im; }
inline double size(double x) { return std::fabs(x); }
inline double size(Complex x) { return std::hypot(x.re, x.im); }
inline double square(double x) { return x * x; }
inline double square(Complex x) { return x.re * x.re + x.im * x.im; }

/// Σ x y
double dot(const double* x, const double* y, Index n);
Complex dot(const Complex* x, const Complex* y, Index n);
/// y += a x
void add_to(double* y, double a, const double* x, Index n);
void add_to(Complex* y, Complex a, const Complex* x, Index n);
/// y += a x + b z, and then Σ y w: what a reduction to few diagonals does to a row, on one way through it.
double add_two(double* y, double a, const double* x, double b, const double* z, const double* w, Index n);
Complex add_two(Complex* y, Complex a, const Complex* x, Complex b, const Complex* z, const Complex* w, Index n);
/// y += a x, then z += b y.
void add_on(double* y, double a, const double* x, double* z, double b, Index n);
void add_on(Complex* y, Complex a, const Complex* x, Complex* z, Complex b, Index n);
/// Of rows i and j: (x, y) ← (c x − s y, s x + c y)
struct Rotation {
  Index i, j;
  double c, s;
};
/// `count` rotations one after the other, of which each shares a row with the next: row i of one is row j of the next (`down`) or the other way
/// round. `n` elements of rows that are `width` apart.
void rotate(double* rows, Index width, const Rotation* rotations, Index count, bool down, Index n);

/// The place of the first largest |x[i]|; NaN counts only in the first place.
Index largest(const double* x, Index n);
Index largest(const Complex* x, Index n);
/// x /= a
void divide(double* x, double a, Index n);
void divide(Complex* x, Complex a, Index n);
/// to[j · to_step + i] = from[i · from_step + j] of m rows of n
void turn(const double* from, Index from_step, Index m, Index n, double* to, Index to_step);
void turn(const Complex* from, Index from_step, Index m, Index n, Complex* to, Index to_step);

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
View<T> turned(const T* a, Index width) {
  return {a, 1, width};
}
/// c (m × n, `width` to a row) += sign · a b, sums over k.
void multiply_add(double* c, Index width, double sign, View<double> a, View<double> b, Index m, Index n, Index k);
void multiply_add(Complex* c, Index width, double sign, View<Complex> a, View<Complex> b, Index m, Index n, Index k);

}  // namespace vt::detail::matrix_lanes
