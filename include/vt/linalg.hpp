// Linear algebra under its NumPy, SciPy and JAX names. Matrices are the last two axes; axes in
// front are a batch, and batches broadcast. Dtypes are floats of 32 and 64 bits and complex numbers
// of them; integers and bools become f32; f16 and bf16 are refused. Everything works under every
// transform; what has a derivative has it to any order. Below, ᴴ is the conjugate transpose: of
// real matrices it is ᵀ.
//
// What is promised of any finite matrix a, alone or in a batch, compiled or not (n is its longer
// side, eps the machine's epsilon of its dtype, |·| the 1-norm):
//  - Factors multiply to a, and eigenvectors fit their values, up to 30 n eps |a| (lu: times the
//    growth of its pivots). Columns of q, u, v and of eigenvectors of symmetric matrices are
//    orthonormal up to 30 n eps. Singular values, and eigenvalues of symmetric matrices, are right
//    up to 30 n eps |a|, whatever the rank and the distance of values from each other.
//  - solve, inv, lstsq and pinv are right up to the condition number times that.
//  - Large and small elements do not spoil this: matrices near overflow or underflow are scaled to
//    near 1 by a power of two, and back. Results that are subnormal are rounded as these are;
//    results beyond the largest number are infinite.
//  - A matrix that is not finite gives NaN in all its results (but the zeros of a triangle, and
//    lu's row numbers), without long iterations, and leaves the others of its batch alone. A right
//    side that is not finite spoils its own column only.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <vt/ops.hpp>
#include <vt/tensor.hpp>

namespace vt::linalg {

// --- factors -------------------------------------------------------------------------------------

/// Lower L with L Lᴴ = x (`upper`: Lᴴ).
/// Shapes: [..., n, n] → the same. The symmetric (Hermitian) part of x is taken, so that its
/// gradient is symmetric. NaN in the whole triangle where x is not positive definite. Throws: Error
/// if x is not square.
/// Source: NumPy `linalg.cholesky`, with JAX's NaN.
[[nodiscard]] Tensor cholesky(Operand x, bool upper = false);

/// The result of lu.
struct LuResult {
  Tensor lu;  ///< [..., m, n]: U, and below its diagonal L, whose own diagonal is 1
  /// i32[..., min(m, n)]: row i was exchanged with row pivots[i], one after the other
  Tensor pivots;
  Tensor permutation;  ///< i32[..., m]: row i of L U is row permutation[i] of x
};
/// Gaussian elimination with partial pivoting. A singular matrix has a zero on the diagonal of U.
/// Pivots of complex matrices are the largest by modulus; LAPACK, and so JAX, takes |re| + |im|.
/// Source: JAX `lax.linalg.lu`.
[[nodiscard]] LuResult lu(Operand x);
/// (lu, pivots), for lu_solve. Source: SciPy.
[[nodiscard]] std::pair<Tensor, Tensor> lu_factor(Operand x);
/// x with a x = b (`transposed`: aᵀ x = b), from lu_factor(a). b is [n] or [..., n, k].
[[nodiscard]] Tensor lu_solve(const std::pair<Tensor, Tensor>& factors, Operand b,
                              bool transposed = false);
/// (c, lower) for cho_solve. Source: SciPy.
[[nodiscard]] std::pair<Tensor, bool> cho_factor(Operand x, bool lower = false);
/// x with a x = b, from cho_factor(a). b is [n] or [..., n, k].
[[nodiscard]] Tensor cho_solve(const std::pair<Tensor, bool>& factor, Operand b);

/// The result of qr.
struct QrResult {
  Tensor q, r;
};
/// x = q r with orthonormal columns in q and an upper triangle r, signed as LAPACK does.
/// Shapes: [..., m, n] → q [..., m, k], r [..., k, n]; k is min(m, n), or m if `mode` is "complete"
/// instead of "reduced". Has a derivative unless q is complete and m > n.
/// Source: NumPy `linalg.qr`.
[[nodiscard]] QrResult qr(Operand x, std::string_view mode = "reduced");

/// The result of eigh.
struct EighResult {
  Tensor eigenvalues;   ///< [..., n], ascending
  Tensor eigenvectors;  ///< [..., n, n], in columns
};
/// Of the symmetric (Hermitian) part of x; the eigenvalues are real. The sign (phase) of a vector
/// is such that its first element that is at least 0.37 of its largest is positive. The vectors'
/// derivative is infinite or NaN where eigenvalues are equal, the values' is not.
/// Source: NumPy `linalg.eigh`.
[[nodiscard]] EighResult eigh(Operand x);
/// eigh's eigenvalues alone.
[[nodiscard]] Tensor eigvalsh(Operand x);

/// The result of eig.
struct EigResult {
  Tensor eigenvalues;   ///< [..., n], in no particular order
  Tensor eigenvectors;  ///< [..., n, n], in columns
};
/// Of any square x: complex, c64 for f32 and c128 for f64. x is balanced before, unless that would
/// spoil vectors. Vectors have length 1 and a real positive largest element; those of a real matrix
/// are real, or conjugate to each other, exactly. By Hessenberg's form and shifted QR steps.
/// Where eigenvalues are equal derivatives are infinite or NaN, but not those of the eigenvalues of
/// a normal x. Derivatives of vectors keep the vectors' length and phase.
/// Source: NumPy `linalg.eig`, JAX `lax.linalg.eig`.
[[nodiscard]] EigResult eig(Operand x);
/// eig's eigenvalues alone.
[[nodiscard]] Tensor eigvals(Operand x);

/// The result of svd.
struct SvdResult {
  Tensor u, s, vh;
};
/// x = u diag(s) vh with descending s ≥ 0.
/// Shapes: [..., m, n] → u [..., m, m], s [..., k], vh [..., n, n] with k = min(m, n); without
/// `full_matrices` u [..., m, k], vh [..., k, n]. The sign (phase) of a column of u (of a wide x:
/// of vhᴴ) is such that its first element that is at least 0.37 of its largest is positive. Has a
/// derivative if its factors are not full, or x is square; that of u and vh needs singular values
/// that differ. Source: NumPy `linalg.svd`.
[[nodiscard]] SvdResult svd(Operand x, bool full_matrices = true);
/// svd's singular values alone.
[[nodiscard]] Tensor svdvals(Operand x);

// --- systems -------------------------------------------------------------------------------------

/// x with a x = b.
/// Shapes: a [..., n, n]; b [n], or [..., n, k]. Inf or NaN where a is singular. One LU serves the
/// value and all derivatives.
/// Throws: Error if a is not square or b does not fit. Source: NumPy 2 `linalg.solve`.
[[nodiscard]] Tensor solve(Operand a, Operand b);
/// a⁻¹ of square matrices; inf or NaN where there is none.
[[nodiscard]] Tensor inv(Operand a);

/// Options of triangular_solve.
struct TriangularSolveOptions {
  bool left_side = false;  ///< op(a) x = b; else x op(a) = b
  bool lower = false;      ///< which triangle of a is read
  bool transpose_a = false;
  bool unit_diagonal = false;  ///< the diagonal is not read but taken for ones
};
/// x with op(a) x = b or x op(a) = b. b is [..., n, k] (or [..., k, n]).
/// Source: JAX `lax.linalg.triangular_solve`.
[[nodiscard]] Tensor triangular_solve(Operand a, Operand b,
                                      const TriangularSolveOptions& options = {});
/// x with a x = b (trans = 1: aᵀ x = b, 2: aᴴ x = b) for triangular a; b is [n] or [..., n, k].
/// Source: SciPy.
[[nodiscard]] Tensor solve_triangular(Operand a, Operand b, Param<int> trans = 0,
                                      bool lower = false, bool unit_diagonal = false);
/// x with T x = b for a tridiagonal T: d is its diagonal, dl the one below, du the one above; row i
/// of T has dl[i] at column i − 1, d[i] at i and du[i] at i + 1.
/// Shapes: dl, d, du [..., n] (dl[0] and du[n − 1] are not used); b is [n] or [..., n, k].
/// Source: JAX `lax.linalg.tridiagonal_solve`.
[[nodiscard]] Tensor tridiagonal_solve(Operand dl, Operand d, Operand du, Operand b);

/// The result of lstsq.
struct LstsqResult {
  Tensor x;          ///< [..., n] or [..., n, k]: the shortest for which |a x − b| is least
  Tensor residuals;  ///< |b − a x|²: [...] or [..., k], one for each right side
  Tensor rank;       ///< i32 [...]: how many columns count as independent
  Tensor s;          ///< singular values of a, [..., min(m, n)]; computed only if they are read
};
/// Least squares for a [..., m, n] and b [m] or [..., m, k], by QR with exchanged columns. The rank
/// is how many diagonal elements of r, which fall, are above rcond times the first; by default
/// rcond is the machine's epsilon times max(m, n), and 0 keeps all columns that it can. What is
/// below counts as 0, and x is the shortest solution of the rest. Where columns fall off without a
/// gap this is not the solution without small singular values, which is matmul(pinv(a, rtol), b).
/// If all columns count, x is refined once with residuals of more digits than the dtype has: then
/// nearly all digits are right that a and b determine, and sizes of columns do not matter.
/// Derivatives, of any rank, are those at a constant rank (Golub and Pereyra 1973).
/// Source: NumPy `linalg.lstsq` for the results, LAPACK `gelsy` for the rank (Businger and Golub
/// 1965), Björck 1967 for the refinement.
[[nodiscard]] LstsqResult lstsq(Operand a, Operand b,
                                std::optional<Param<double>> rcond = std::nullopt);
/// The Moore–Penrose inverse of [..., m, n], [..., n, m]; rtol as rcond of lstsq (10 times that by
/// default).
/// Derivative: Golub and Pereyra 1973. Source: NumPy `linalg.pinv`, with JAX's tolerance.
[[nodiscard]] Tensor pinv(Operand a, std::optional<Param<double>> rtol = std::nullopt);
/// x with tensordot(a, x, x.rank()) = b. Source: NumPy.
[[nodiscard]] Tensor tensorsolve(Operand a, Operand b);
/// The inverse of tensordot(a, ·, a.rank() − ind). Source: NumPy.
[[nodiscard]] Tensor tensorinv(Operand a, Param<int> ind = 2);

// --- numbers of a matrix -------------------------------------------------------------------------

/// Determinants of square matrices: by LU, of up to 3 rows by the formula, with an error of a few
/// n eps |a|ⁿ. Products on the way do not overflow. All derivatives are right where a is singular,
/// too, whatever its rank. There the singular values are computed too, which takes longer: of all
/// matrices of a batch if one is singular, under vmap only in the lanes whose matrix is.
[[nodiscard]] Tensor det(Operand a);
/// The result of slogdet.
struct SlogdetResult {
  Tensor sign;       ///< −1, 0 or 1; of a complex matrix a number of modulus 1, or 0
  Tensor logabsdet;  ///< −∞ where the determinant is 0
};
/// Sign and logarithm of determinants, from the LU that their derivative uses, too. Where the
/// determinant is 0 the logarithm has no derivative: it is infinite or NaN, in that matrix only.
/// Of subnormal matrices it has only as many digits as their LU.
[[nodiscard]] SlogdetResult slogdet(Operand a);
/// How many singular values are above `rtol` · the largest; i32. By default `rtol` is
/// epsilon · max(m, n).
[[nodiscard]] Tensor matrix_rank(Operand a, std::optional<Param<double>> rtol = std::nullopt);

/// What norm measures: a number p, "fro" or "nuc".
struct NormOrd {
  enum class Kind { number, frobenius, nuclear, unknown } kind = Kind::number;
  double p = 2;
  /// as given; the function that gets it refuses an unknown one, which knows the caller's line
  std::string_view name = {};
  template <detail::ParamFor<double> T>
  NormOrd(T value) : p(Param<double>(value)) {}
  NormOrd(const char* name);
};
/// The length of the vectors along `axes`, all elements being one vector unless axes are given:
/// (Σ|x|ᵖ)^(1/p) for `ord` p, or the largest (smallest) |x| for p = ±inf, or the number of nonzeros
/// for 0. Real; integers become f32. All derivatives are 0 where x is 0; for even p also those of
/// single elements that are 0.
/// Throws: Error (value) if `ord` is NaN. Source: NumPy 2 `linalg.vector_norm`.
[[nodiscard]] Tensor vector_norm(Operand x, Param<double> ord = 2.0, const ReduceAxes& axes = {},
                                 bool keepdims = false);
/// Of vectors (one axis): vector_norm. Of matrices (two axes): "fro"; "nuc", the sum of the
/// singular values; ±2, the largest (smallest) of them; ±1 of column sums and ±inf of row sums of
/// |x|. Without `ord` the 2-norm of all elements. All derivatives are 0 where x is. Source: NumPy
/// `linalg.norm`.
[[nodiscard]] Tensor norm(Operand x, std::optional<NormOrd> ord = std::nullopt,
                          const ReduceAxes& axes = {}, bool keepdims = false);
/// norm(a, p) · norm(a⁻¹, p); by default the ratio of the extreme singular values.
Tensor cond(Operand a, std::optional<NormOrd> p = std::nullopt);

// --- products ------------------------------------------------------------------------------------

/// xⁿ, a product of n factors x (the unit matrix for 0); n < 0: the same of x⁻¹.
[[nodiscard]] inline Tensor matrix_power(Operand x, Param<int> n) {
  return vt::matrix_power(std::move(x), n);
}
/// eˣ of square matrices: Padé approximant of degree 13 (7 for f32), scaling and squaring (Higham
/// 2005), each matrix as often as it needs.
[[nodiscard]] Tensor expm(Operand x);
/// The product of several matrices (the first and the last may be vectors) in the cheapest order.
/// Source: NumPy `linalg.multi_dot`.
[[nodiscard]] Tensor multi_dot(TensorSpan factors, CallSite where = CallSite::here());

}  // namespace vt::linalg

namespace vt {
using linalg::cholesky;
using linalg::det;
using linalg::eig;
using linalg::eigh;
using linalg::eigvals;
using linalg::expm;
using linalg::inv;
using linalg::lstsq;
using linalg::lu;
using linalg::norm;
using linalg::pinv;
using linalg::qr;
using linalg::slogdet;
using linalg::solve;
using linalg::svd;
using linalg::triangular_solve;
using linalg::tridiagonal_solve;
}  // namespace vt
