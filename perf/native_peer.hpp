// The limits and peers of this machine, compiled for it alone (-march=native): Eigen's products,
// plain loops, copies, FMA peak.
#pragma once

#include <complex>
#include <cstddef>

namespace native {

void set_threads(int threads);
/// c[n,n] = a·b, row-major.
void matmul(const float* a, const float* b, float* c, int n);
void matmul(const double* a, const double* b, double* c, int n);
/// `count` products of n×n matrices, one after the other, the size unknown to the compiler.
void batched_matmul(const float* a, const float* b, float* c, int n, int count);
/// Multiply-adds in registers only; returns something that depends on them. Flops per call:
/// fma_flops.
float fma_peak(const float*, int threads);
double fma_peak(const double*, int threads);
double fma_flops(float);
double fma_flops(double);
/// Copies and reads that stream, on as many threads.
void copy(const float* from, float* to, std::size_t n, int threads);
float read(const float* from, std::size_t n, int threads);
/// libm, element by element.
void exp(const float* x, float* y, std::size_t n);
void log(const float* x, float* y, std::size_t n);
void sin(const float* x, float* y, std::size_t n);
void tanh(const float* x, float* y, std::size_t n);

/// std::sort of a copy; the stable order by std::stable_sort of indices; the k greatest by
/// std::partial_sort of a copy.
void sort(const float* x, float* y, std::size_t n);
void sort(const double* x, double* y, std::size_t n);
void argsort(const float* x, int* order, std::size_t n);
void greatest(const float* x, float* y, std::size_t n, std::size_t k);

/// `count` decompositions of n × n matrices (n = 2, 3, 4, 8, 16); T is float or double. solve: one
/// right side each.
template <class T, int n>
struct SmallMatrices {
  static void cholesky(const T* a, T* l, int count);
  static void solve(const T* a, const T* b, T* x, int count);
  static void eigh(const T* a, T* values, T* vectors, int count);
};

/// Decompositions of one n × n matrix, the size unknown to the compiler (native_large.cpp).
/// triangular_solve: n right sides.
template <class T>
struct LargeMatrix {
  static void cholesky(const T* a, T* l, int n);
  static void lu(const T* a, T* packed, int n);
  static void solve(const T* a, const T* b, T* x, int n);
  static void triangular_solve(const T* a, const T* b, T* x, int n);
  static void inverse(const T* a, T* x, int n);
  static void qr(const T* a, T* q, T* r, int n);
  static void eigh(const T* a, T* values, T* vectors, int n);
  static void svd(const T* a, T* u, T* values, T* v, int n);
  static void eig(const T* a, std::complex<T>* values, std::complex<T>* vectors, int n);
  static void expm(const T* a, T* x, int n);
};

}  // namespace native
