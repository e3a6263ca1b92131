// Eigen's decompositions of one large matrix: blocked Cholesky, LU with partial pivots, QR, divide-and-conquer SVD, symmetric eigenvalues.
#include <Eigen/Cholesky>
#include <Eigen/Eigenvalues>
#include <Eigen/LU>
#include <Eigen/QR>
#include <Eigen/SVD>

#include "native_peer.hpp"

namespace native {

namespace {

/// By columns, as Eigen prefers it: what is read is symmetric, random, or the transpose of a random matrix, which is as hard.
using Matrix = Eigen::MatrixXd;
Eigen::Map<const Matrix> read(const double* a, int n) { return {a, n, n}; }
Eigen::Map<Matrix> write(double* a, int n) { return {a, n, n}; }

}  // namespace

void cholesky(const double* a, double* l, int n) { write(l, n) = Eigen::LLT<Matrix>(read(a, n)).matrixL(); }
void lu(const double* a, double* packed, int n) { write(packed, n) = Eigen::PartialPivLU<Matrix>(read(a, n)).matrixLU(); }
void solve(const double* a, const double* b, double* x, int n) {
  Eigen::Map<Eigen::VectorXd>(x, n) = Eigen::PartialPivLU<Matrix>(read(a, n)).solve(Eigen::Map<const Eigen::VectorXd>(b, n));
}
void qr(const double* a, double* q, double* r, int n) {
  const Eigen::HouseholderQR<Matrix> factors(read(a, n));
  write(q, n) = factors.householderQ();
  write(r, n) = factors.matrixQR().triangularView<Eigen::Upper>();
}
void eigh(const double* a, double* values, double* vectors, int n) {
  const Eigen::SelfAdjointEigenSolver<Matrix> solver(read(a, n));
  Eigen::Map<Eigen::VectorXd>(values, n) = solver.eigenvalues();
  write(vectors, n) = solver.eigenvectors();
}
void svd(const double* a, double* u, double* values, double* v, int n) {
  const Eigen::BDCSVD<Matrix> factors(read(a, n), Eigen::ComputeThinU | Eigen::ComputeThinV);
  Eigen::Map<Eigen::VectorXd>(values, n) = factors.singularValues();
  write(u, n) = factors.matrixU();
  write(v, n) = factors.matrixV();
}

}  // namespace native
