// Arithmetic of Tensors and doubles for long formulas: functions out of line, where the public
// operators make their operands on the spot and so take twice as long to compile. A using-directive
// in the formulas' own namespace brings them in.
#pragma once

#include <vt/ops.hpp>

namespace vt::detail::formulas {

#define VT_FORMULA_OPERATOR(op)                     \
  Tensor operator op(const Tensor&, const Tensor&); \
  Tensor operator op(const Tensor&, double);        \
  Tensor operator op(double, const Tensor&);        \
  Tensor operator op(const Tensor&, int) = delete; /* which would become a double */
VT_FORMULA_OPERATOR(+)
VT_FORMULA_OPERATOR(-)
VT_FORMULA_OPERATOR(*)
VT_FORMULA_OPERATOR(/)
VT_FORMULA_OPERATOR(<)
VT_FORMULA_OPERATOR(<=)
VT_FORMULA_OPERATOR(>)
VT_FORMULA_OPERATOR(>=)
#undef VT_FORMULA_OPERATOR
Tensor operator-(const Tensor&);
Tensor equal(const Tensor&, double);
Tensor logical_and(const Tensor&, const Tensor&);
Tensor logical_or(const Tensor&, const Tensor&);
Tensor logical_not(const Tensor&);
Tensor where(const Tensor&, const Tensor&, const Tensor&);
Tensor where(const Tensor&, double, const Tensor&);
Tensor where(const Tensor&, const Tensor&, double);
Tensor where(const Tensor&, double, double);
Tensor minimum(const Tensor&, const Tensor&);
Tensor maximum(const Tensor&, const Tensor&);
Tensor maximum(const Tensor&, double);
Tensor pow(const Tensor&, const Tensor&);
Tensor abs(const Tensor&);
Tensor exp(const Tensor&);
Tensor log(const Tensor&);
Tensor log1p(const Tensor&);
Tensor sqrt(const Tensor&);
Tensor floor(const Tensor&);
Tensor lgamma(const Tensor&);
Tensor digamma(const Tensor&);
Tensor stop_gradient(const Tensor&);
Tensor ones_like(const Tensor&);
Tensor zeros_like(const Tensor&);

/// t − log(1 + t) for t > −1, given `sum` = 1 + t, of which t near −1 has lost the digits. Up to ½
/// by the series of the logarithm in r = t/(2 + t): nothing cancels.
Tensor log1p_excess(const Tensor& t, const Tensor& sum);

}  // namespace vt::detail::formulas
