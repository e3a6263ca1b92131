// Eigen's decompositions of one large matrix: blocked Cholesky, LU with partial pivots, QR,
// divide-and-conquer SVD, symmetric eigenvalues.
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>
#include <unsupported/Eigen/MatrixFunctions>

#include "native_peer.hpp"

namespace native {

namespace {

/// By columns, as Eigen prefers it: what is read is symmetric, random, or the transpose of a random
/// matrix, which is as hard.
template <class T>
using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic>;
template <class T>
using Vector = Eigen::Matrix<T, Eigen::Dynamic, 1>;
template <class T>
Eigen::Map<const Matrix<T>> read(const T* a, int n) {
  return {a, n, n};
}
template <class T>
Eigen::Map<Matrix<T>> write(T* a, int n) {
  return {a, n, n};
}

}  // namespace

template <class T>
void LargeMatrix<T>::cholesky(const T* a, T* l, int n) {
  write(l, n) = Eigen::LLT<Matrix<T>>(read(a, n)).matrixL();
}
template <class T>
void LargeMatrix<T>::lu(const T* a, T* packed, int n) {
  write(packed, n) = Eigen::PartialPivLU<Matrix<T>>(read(a, n)).matrixLU();
}
template <class T>
void LargeMatrix<T>::solve(const T* a, const T* b, T* x, int n) {
  Eigen::Map<Vector<T>>(x, n) =
      Eigen::PartialPivLU<Matrix<T>>(read(a, n)).solve(Eigen::Map<const Vector<T>>(b, n));
}
template <class T>
void LargeMatrix<T>::triangular_solve(const T* a, const T* b, T* x, int n) {
  write(x, n) = read(a, n).template triangularView<Eigen::Lower>().solve(read(b, n));
}
template <class T>
void LargeMatrix<T>::inverse(const T* a, T* x, int n) {
  write(x, n) = read(a, n).inverse();
}
template <class T>
void LargeMatrix<T>::qr(const T* a, T* q, T* r, int n) {
  const Eigen::HouseholderQR<Matrix<T>> factors(read(a, n));
  write(q, n) = factors.householderQ();
  write(r, n) = factors.matrixQR().template triangularView<Eigen::Upper>();
}
template <class T>
void LargeMatrix<T>::eigh(const T* a, T* values, T* vectors, int n) {
  const Eigen::SelfAdjointEigenSolver<Matrix<T>> solver(read(a, n));
  Eigen::Map<Vector<T>>(values, n) = solver.eigenvalues();
  write(vectors, n) = solver.eigenvectors();
}
template <class T>
void LargeMatrix<T>::svd(const T* a, T* u, T* values, T* v, int n) {
  const Eigen::BDCSVD<Matrix<T>> factors(read(a, n), Eigen::ComputeThinU | Eigen::ComputeThinV);
  Eigen::Map<Vector<T>>(values, n) = factors.singularValues();
  write(u, n) = factors.matrixU();
  write(v, n) = factors.matrixV();
}
template <class T>
void LargeMatrix<T>::eig(const T* a, std::complex<T>* values, std::complex<T>* vectors, int n) {
  const Eigen::EigenSolver<Matrix<T>> solver(read(a, n));
  Eigen::Map<Vector<std::complex<T>>>(values, n) = solver.eigenvalues();
  write(vectors, n) = solver.eigenvectors();
}
template <class T>
void LargeMatrix<T>::expm(const T* a, T* x, int n) {
  write(x, n) = Matrix<T>(read(a, n)).exp();
}
template struct LargeMatrix<float>;
template struct LargeMatrix<double>;

}  // namespace native
