// What functions on matrices share: operands checked and brought to one dtype and batch, and the
// factors that solve and slogdet reuse.
#pragma once

#include <string_view>

#include <vt/linalg.hpp>

#include <vt/detail/function.hpp>
#include "../support/operands.hpp"

namespace vt::detail::linalg {

/// The operand as strong f32, f64, c64 or c128. Throws for other floats.
Tensor matrix(std::string_view name, const Operand& x, CallSite where);
/// The same with at least two axes; with the last two equal.
Tensor matrices(std::string_view name, const Operand& x, CallSite where);
Tensor square(std::string_view name, const Operand& x, CallSite where);
/// Both in the dtype that they meet in.
void meet(Tensor& a, Tensor& b, CallSite where);

/// Swapped at the last two axes; and conjugated.
Tensor matrix_transpose(const Tensor& x);
Tensor adjoint(const Tensor& x);
Shape batch_of(const Tensor& x);
Tensor with_batch(const Tensor& x, const Shape& batch, CallSite where);

inline double epsilon(DType d) { return real_dtype(d) == f64 ? 0x1p-52 : 0x1p-23; }
/// Exponents of |x|, of complex numbers of the larger part, as numbers hold them, but one less, so
/// that the power and its reciprocal are both normal numbers; only of what is not finite the
/// reciprocal is 0.
Tensor exponents(const Tensor& x, CallSite where);
/// The power of two that has such an exponent.
Tensor power_of(const Tensor& exponent);
/// A power of two near the largest element of each matrix, two axes of 1 behind the batch's.
Tensor power_of_matrices(const Tensor& a, CallSite where);

/// solve(a, b) for b [n] or [..., n, k] by a function that takes matrices of one batch.
Tensor for_right_sides(std::string_view name, const Tensor& a, const Tensor& right, CallSite where,
                       FunctionRef<Tensor(const Tensor&, const Tensor&)> solve);

/// The LU of a, as constants: what is computed from them has its derivative by a (see SolveParams).
struct Factors {
  Tensor lu, pivots, permutation;
};
Factors factors(const Tensor& a, CallSite where);
/// x with a x = b; of one batch.
Tensor solved(const Tensor& a, const Factors& f, const Tensor& b, CallSite where);
/// The results of qr, eigh, svd or eig.
std::vector<Tensor> decomposed(Op op, const Tensor& a, DecompositionParams p, CallSite where);

}  // namespace vt::detail::linalg
