// The inner loops of linear algebra for complex numbers: the same code on all machines.

#include <vt/detail/small_vec.hpp>

#include "../base/recycled.hpp"
#include "simd_rows.hpp"

namespace vt::detail::simd_rows {

namespace complex_loops {

Complex dot(const Complex* x, const Complex* y, Index n) {
  double re = 0, im = 0;
  for (Index i = 0; i < n; ++i) {
    re += x[i].re * y[i].re - x[i].im * y[i].im;
    im += x[i].re * y[i].im + x[i].im * y[i].re;
  }
  return {re, im};
}
void add_to(Complex* y, Complex a, const Complex* x, Index n) {
  for (Index i = 0; i < n; ++i) {
    y[i].re += a.re * x[i].re - a.im * x[i].im;
    y[i].im += a.re * x[i].im + a.im * x[i].re;
  }
}
Complex add_two(Complex* y, Complex a, const Complex* x, Complex b, const Complex* z,
                const Complex* w, Index n) {
  add_to(y, a, x, n);
  add_to(y, b, z, n);
  return dot(y, w, n);
}
void add_on(Complex* y, Complex a, const Complex* x, Complex* z, Complex b, Index n) {
  add_to(y, a, x, n);
  add_to(z, b, y, n);
}
void row_dots(const Complex* a, Index step, Index rows, const Complex* x, Index n, Complex* y) {
  for (Index r = 0; r < rows; ++r) y[r] = dot(a + r * step, x, n);
}
void add_rows(Complex* y, const Complex* factors, const Complex* a, Index step, Index rows,
              Index n) {
  for (Index r = 0; r < rows; ++r) add_to(y, factors[r], a + r * step, n);
}
void add_to_rows(Complex* a, Index step, Index rows, const Complex* factors, Index factor_step,
                 const Complex* x, Index n) {
  for (Index r = 0; r < rows; ++r) add_to(a + r * step, factors[r * factor_step], x, n);
}
Index largest(const Complex* x, Index n) {
  Index at = 0;
  double most = size(x[0]);
  for (Index i = 1; i < n; ++i)
    if (const double s = size(x[i]); s > most) most = s, at = i;
  return at;
}
void divide(Complex* x, Complex a, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = x[i] / a;
}
void multiply(Complex* x, Complex a, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = x[i] * a;
}
void turn(const Complex* from, Index from_step, Index m, Index n, Complex* to, Index to_step) {
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) to[j * to_step + i] = from[i * from_step + j];
}
void symmetrize(Complex* a, Index n) {
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j) {
      a[i * n + j] = Complex(0.5) * a[i * n + j] + Complex(0.5) * conj(a[j * n + i]);
      a[j * n + i] = conj(a[i * n + j]);
    }
    a[i * n + i] = real(a[i * n + i]);
  }
}
constexpr Loops<Complex> loops = {dot,      add_to,      add_two,  add_on,  row_dots,
                                  add_rows, add_to_rows, nullptr,  nullptr, largest,
                                  nullptr,  divide,      multiply, turn,    symmetrize};

}  // namespace complex_loops

template <>
const Loops<Complex>& loops<Complex>() {
  return complex_loops::loops;
}

void multiply_add(Complex* c, Index step, double sign, View<Complex> a, View<Complex> b, Index m,
                  Index n, Index k) {
  RecycledVec<Complex> room;
  room.resize(n);
  for (Index p = 0; p < k; ++p) {
    for (Index j = 0; j < n; ++j) {
      const Complex x = b.data[p * b.row + j * b.column];
      room[j] = b.conjugate ? conj(x) : x;
    }
    for (Index i = 0; i < m; ++i) {
      const Complex x = a.data[i * a.row + p * a.column];
      add_to(c + i * step, Complex(sign) * (a.conjugate ? conj(x) : x), room.data(), n);
    }
  }
}
void substitute(const Complex* t, Index rows, Complex* b, Index step, Index n) {
  for (Index r = 0; r < rows; ++r) {
    for (Index q = 0; q < r; ++q) add_to(b + r * step, -t[4 * r + q], b + q * step, n);
    multiply(b + r * step, t[5 * r], n);
  }
}

}  // namespace vt::detail::simd_rows
