// Peers and limits, compiled with -march=native -O3 -fopenmp; nothing of vt is included here.
#include "native_peer.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace native {

void set_threads(int threads) { Eigen::setNbThreads(threads); }

template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class T>
static void eigen_matmul(const T* a, const T* b, T* c, int n) {
  Eigen::Map<Matrix<T>>(c, n, n).noalias() =
      Eigen::Map<const Matrix<T>>(a, n, n) * Eigen::Map<const Matrix<T>>(b, n, n);
}
void matmul(const float* a, const float* b, float* c, int n) { eigen_matmul(a, b, c, n); }
void matmul(const double* a, const double* b, double* c, int n) { eigen_matmul(a, b, c, n); }

// Small sizes with the size known, as a careful user of Eigen writes them.
template <int n>
static void fixed_batch(const float* a, const float* b, float* c, int count) {
  using Fixed = Eigen::Matrix<float, n, n, Eigen::RowMajor>;
  for (int i = 0; i < count; ++i)
    Eigen::Map<Fixed>(c + i * n * n).noalias() =
        Eigen::Map<const Fixed>(a + i * n * n) * Eigen::Map<const Fixed>(b + i * n * n);
}
void batched_matmul(const float* a, const float* b, float* c, int n, int count) {
  switch (n) {
    case 4: return fixed_batch<4>(a, b, c, count);
    case 8: return fixed_batch<8>(a, b, c, count);
    case 16: return fixed_batch<16>(a, b, c, count);
    default:
      for (int i = 0; i < count; ++i) eigen_matmul(a + i * n * n, b + i * n * n, c + i * n * n, n);
  }
}

template <class T>
static T run_fma(const T* seed) {
#ifdef __AVX512F__
  constexpr int lanes = 64 / sizeof(T);
#else
  constexpr int lanes = 32 / sizeof(T);
#endif
  typedef T Vector __attribute__((vector_size(lanes * sizeof(T))));
  constexpr int chains = 12;
  Vector sums[chains];
  const Vector x = Vector{} + seed[0], y = Vector{} + seed[1];
  for (int i = 0; i < chains; ++i) sums[i] = Vector{} + static_cast<T>(i);
  for (int step = 0; step < 100000; ++step) {
#pragma GCC unroll 12
    for (int i = 0; i < chains; ++i) sums[i] = sums[i] * x + y;
  }
  Vector total = sums[0];
  for (int i = 1; i < chains; ++i) total += sums[i];
  return total[0];
}
template <class T>
static double flops_of_fma() {
#ifdef __AVX512F__
  return 2.0 * (64 / sizeof(T)) * 12 * 100000;
#else
  return 2.0 * (32 / sizeof(T)) * 12 * 100000;
#endif
}

/// Runs part(0) … part(threads − 1) at once.
template <class F>
static void parallel(int threads, F part) {
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int t = 0; t < threads; ++t) part(t);
}

template <class T>
static T fma_on(const T* seed, int threads) {
  std::vector<T> results(threads * 16);
  parallel(threads, [&](int t) { results[t * 16] = run_fma(seed); });
  return results[0];
}
float fma_peak(const float* seed, int threads) { return fma_on(seed, threads); }
double fma_peak(const double* seed, int threads) { return fma_on(seed, threads); }
double fma_flops(float) { return flops_of_fma<float>(); }
double fma_flops(double) { return flops_of_fma<double>(); }

void copy(const float* from, float* to, std::size_t n, int threads) {
  const std::size_t part = n / threads;
  parallel(threads, [&](int t) {
    const std::size_t begin = t * part, end = t + 1 == threads ? n : begin + part;
    std::memcpy(to + begin, from + begin, (end - begin) * sizeof(float));
  });
}

float read(const float* from, std::size_t n, int threads) {
  typedef float Vector __attribute__((vector_size(64)));
  const std::size_t part = n / threads / 128 * 128;
  std::vector<float> sums(threads * 16);
  parallel(threads, [&](int t) {
    Vector total[8] = {};
    const float* p = from + t * part;
    for (std::size_t i = 0; i + 128 <= part; i += 128)
      for (int k = 0; k < 8; ++k) {
        Vector v;
        std::memcpy(&v, p + i + k * 16, sizeof v);
        total[k] += v;
      }
    for (int k = 1; k < 8; ++k) total[0] += total[k];
    for (int k = 0; k < 16; ++k) sums[t * 16] += total[0][k];
  });
  float sum = 0;
  for (int t = 0; t < threads; ++t) sum += sums[t * 16];
  return sum;
}

void exp(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::exp(x[i]);
}
void log(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::log(x[i]);
}
void sin(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::sin(x[i]);
}
void tanh(const float* x, float* y, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = std::tanh(x[i]);
}

template <class T>
static void sorted_copy(const T* x, T* y, std::size_t n) {
  std::copy(x, x + n, y);
  std::sort(y, y + n);
}
void sort(const float* x, float* y, std::size_t n) { sorted_copy(x, y, n); }
void sort(const double* x, double* y, std::size_t n) { sorted_copy(x, y, n); }
void argsort(const float* x, int* order, std::size_t n) {
  std::iota(order, order + n, 0);
  std::stable_sort(order, order + n, [x](int i, int j) { return x[i] < x[j]; });
}
void greatest(const float* x, float* y, std::size_t n, std::size_t k) {
  std::copy(x, x + n, y);
  std::partial_sort(y, y + k, y + n, std::greater<>());
}

}  // namespace native
