// Functions made only of operations that IEEE 754 rounds exactly, so that every backend gives the
// same bits. Random draws in f64 are made with them.
#pragma once

#include <vt/tensor.hpp>

namespace vt::detail::exact {

// Operands and results are f64, right to a few units in the last place. Values of Op::log and its
// like are each library's own.

Tensor log(const Tensor& x);      ///< NaN below 0
Tensor log1p(const Tensor& x);    ///< of finite x; has no derivative
Tensor exp(const Tensor& x);      ///< subnormal results are rounded twice
Tensor erf_inv(const Tensor& x);  ///< of |x| < 1 − 2⁻⁵⁴ and ±1
/// The same of |x| < 1, given 1 − x² ≥ 1e-300, of which x near ±1 has lost the digits. No
/// derivative.
Tensor erf_inv(const Tensor& x, const Tensor& rest);
Tensor erfcx(const Tensor& x);   ///< exp(x²) erfc(x) of x ≥ 0; has no derivative
Tensor tan_pi(const Tensor& x);  ///< tan(πx) of |x| ≤ ½; has no derivative

}  // namespace vt::detail::exact
