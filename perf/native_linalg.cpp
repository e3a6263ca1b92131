// Eigen's decompositions of many small matrices, one after the other with the size known, as a
// careful user of Eigen writes them.
//
// Compiled once for each size (VT_PEER_SIZE): all of them in one file would take GCC minutes, as
// every instance of Eigen's expressions adds to the candidates that it resolves the next one's
// operators among.
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>

#include "native_peer.hpp"

namespace native {

template <class T, int n>
using Matrix = Eigen::Matrix<T, n, n, Eigen::RowMajor>;
template <class T, int n>
using Vector = Eigen::Matrix<T, n, 1>;

template <class T, int n>
void SmallMatrices<T, n>::cholesky(const T* a, T* l, int count) {
  for (int i = 0; i < count; ++i) {
    const Eigen::LLT<Matrix<T, n>> factors(Eigen::Map<const Matrix<T, n>>(a + i * n * n));
    Eigen::Map<Matrix<T, n>>(l + i * n * n) = factors.matrixL();
  }
}

template <class T, int n>
void SmallMatrices<T, n>::solve(const T* a, const T* b, T* x, int count) {
  for (int i = 0; i < count; ++i) {
    const Eigen::PartialPivLU<Matrix<T, n>> factors(Eigen::Map<const Matrix<T, n>>(a + i * n * n));
    Eigen::Map<Vector<T, n>>(x + i * n) = factors.solve(Eigen::Map<const Vector<T, n>>(b + i * n));
  }
}

template <class T, int n>
void SmallMatrices<T, n>::eigh(const T* a, T* values, T* vectors, int count) {
  for (int i = 0; i < count; ++i) {
    const Eigen::SelfAdjointEigenSolver<Matrix<T, n>> solver(
        Eigen::Map<const Matrix<T, n>>(a + i * n * n));
    Eigen::Map<Vector<T, n>>(values + i * n) = solver.eigenvalues();
    Eigen::Map<Matrix<T, n>>(vectors + i * n * n) = solver.eigenvectors();
  }
}

template struct SmallMatrices<float, VT_PEER_SIZE>;
template struct SmallMatrices<double, VT_PEER_SIZE>;

}  // namespace native
