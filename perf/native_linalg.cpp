// Eigen's decompositions of many small matrices, one after the other with the size known, as a careful user of Eigen writes them.
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include "native_peer.hpp"

namespace native {

namespace {

/// Functions of their own: all sizes inlined into one, they would take GCC minutes.
template <class T, int n>
struct Loops {
  using Matrix = Eigen::Matrix<T, n, n, Eigen::RowMajor>;
  using Vector = Eigen::Matrix<T, n, 1>;
  [[gnu::noinline]] static void cholesky(const T* a, T* l, int count) {
    for (int i = 0; i < count; ++i) Eigen::Map<Matrix>(l + i * n * n) = Eigen::LLT<Matrix>(Eigen::Map<const Matrix>(a + i * n * n)).matrixL();
  }
  [[gnu::noinline]] static void solve(const T* a, const T* b, T* x, int count) {
    for (int i = 0; i < count; ++i)
      Eigen::Map<Vector>(x + i * n) = Eigen::PartialPivLU<Matrix>(Eigen::Map<const Matrix>(a + i * n * n)).solve(Eigen::Map<const Vector>(b + i * n));
  }
  [[gnu::noinline]] static void eigh(const T* a, T* values, T* vectors, int count) {
    for (int i = 0; i < count; ++i) {
      const Eigen::SelfAdjointEigenSolver<Matrix> solver(Eigen::Map<const Matrix>(a + i * n * n));
      Eigen::Map<Vector>(values + i * n) = solver.eigenvalues();
      Eigen::Map<Matrix>(vectors + i * n * n) = solver.eigenvectors();
    }
  }
};

template <class T, class F>
void with_size(int n, const F& f) {
  switch (n) {
    case 2: return f(Loops<T, 2>{});
    case 3: return f(Loops<T, 3>{});
    case 4: return f(Loops<T, 4>{});
    case 8: return f(Loops<T, 8>{});
    case 16: return f(Loops<T, 16>{});
  }
}

}  // namespace

template <class T>
void cholesky(const T* a, T* l, int n, int count) {
  with_size<T>(n, [&](auto loops) { loops.cholesky(a, l, count); });
}
template <class T>
void solve(const T* a, const T* b, T* x, int n, int count) {
  with_size<T>(n, [&](auto loops) { loops.solve(a, b, x, count); });
}
template <class T>
void eigh(const T* a, T* values, T* vectors, int n, int count) {
  with_size<T>(n, [&](auto loops) { loops.eigh(a, values, vectors, count); });
}
template void cholesky(const float*, float*, int, int);
template void cholesky(const double*, double*, int, int);
template void solve(const float*, const float*, float*, int, int);
template void solve(const double*, const double*, double*, int, int);
template void eigh(const float*, float*, float*, int, int);
template void eigh(const double*, double*, double*, int, int);

}  // namespace native
