// Functions of one double that <cmath> lacks (sigmoid, rsqrt, erf_inv, digamma) or has not well
// enough (cbrt, lgamma).
#pragma once

namespace vt::detail::special {

double sigmoid(double x);
double rsqrt(double x);
double cbrt(double x);
/// NaN outside [−1, 1], ±∞ at its ends.
double erf_inv(double x);
/// ψ. ∓∞ at ±0, NaN at the negative integers and at −∞.
double digamma(double x);
/// log |Γ|; unlike std::lgamma any number of threads may call it.
double lgamma(double x);

}  // namespace vt::detail::special
