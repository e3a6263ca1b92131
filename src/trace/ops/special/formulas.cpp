// The operators and functions of formulas.hpp, which call the public ones. Ops get the line of the
// function that is composed.
#include "formulas.hpp"

#include <vt/special.hpp>

namespace vt::detail::formulas {

#define VT_FORMULA_OPERATOR(op, function)                                                        \
  Tensor operator op(const Tensor& a, const Tensor& b) {                                         \
    return vt::function(Operand(a), Operand(b));                                                 \
  }                                                                                              \
  Tensor operator op(const Tensor& a, double b) { return vt::function(Operand(a), Operand(b)); } \
  Tensor operator op(double a, const Tensor& b) { return vt::function(Operand(a), Operand(b)); }
VT_FORMULA_OPERATOR(+, add)
VT_FORMULA_OPERATOR(-, subtract)
VT_FORMULA_OPERATOR(*, multiply)
VT_FORMULA_OPERATOR(/, divide)
VT_FORMULA_OPERATOR(<, less)
VT_FORMULA_OPERATOR(<=, less_equal)
VT_FORMULA_OPERATOR(>, greater)
VT_FORMULA_OPERATOR(>=, greater_equal)
#undef VT_FORMULA_OPERATOR
Tensor operator-(const Tensor& x) { return vt::negative(Operand(x)); }
Tensor equal(const Tensor& a, double b) { return vt::equal(Operand(a), Operand(b)); }
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return vt::logical_and(Operand(a), Operand(b));
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return vt::logical_or(Operand(a), Operand(b));
}
Tensor logical_not(const Tensor& x) { return vt::logical_not(Operand(x)); }
Tensor where(const Tensor& c, const Tensor& a, const Tensor& b) {
  return vt::where(Operand(c), Operand(a), Operand(b));
}
Tensor where(const Tensor& c, double a, const Tensor& b) {
  return vt::where(Operand(c), Operand(a), Operand(b));
}
Tensor where(const Tensor& c, const Tensor& a, double b) {
  return vt::where(Operand(c), Operand(a), Operand(b));
}
Tensor where(const Tensor& c, double a, double b) {
  return vt::where(Operand(c), Operand(a), Operand(b));
}
Tensor minimum(const Tensor& a, const Tensor& b) { return vt::minimum(Operand(a), Operand(b)); }
Tensor maximum(const Tensor& a, const Tensor& b) { return vt::maximum(Operand(a), Operand(b)); }
Tensor maximum(const Tensor& a, double b) { return vt::maximum(Operand(a), Operand(b)); }
Tensor pow(const Tensor& a, const Tensor& b) { return vt::pow(Operand(a), Operand(b)); }
Tensor abs(const Tensor& x) { return vt::abs(Operand(x)); }
Tensor exp(const Tensor& x) { return vt::exp(Operand(x)); }
Tensor log(const Tensor& x) { return vt::log(Operand(x)); }
Tensor log1p(const Tensor& x) { return vt::log1p(Operand(x)); }
Tensor sqrt(const Tensor& x) { return vt::sqrt(Operand(x)); }
Tensor floor(const Tensor& x) { return vt::floor(Operand(x)); }
Tensor lgamma(const Tensor& x) { return vt::lgamma(Operand(x)); }
Tensor digamma(const Tensor& x) { return vt::digamma(Operand(x)); }
Tensor stop_gradient(const Tensor& x) { return vt::stop_gradient(Operand(x)); }
Tensor ones_like(const Tensor& x) { return vt::ones_like(Operand(x)); }
Tensor zeros_like(const Tensor& x) { return vt::zeros_like(Operand(x)); }

Tensor log1p_excess(const Tensor& t, const Tensor& sum) {
  const Tensor near = abs(t) < 0.5, inside = where(near, t, 0.0), r = inside / (2.0 + inside),
               square = r * r;
  constexpr int terms = 17;
  Tensor series = 1.0 / (2 * terms + 1);
  for (int k = terms - 1; k >= 1; --k) series = series * square + 1.0 / (2 * k + 1);
  return where(near, r * (inside - 2.0 * square * series), t - log(where(near, 1.0, sum)));
}

}  // namespace vt::detail::formulas
