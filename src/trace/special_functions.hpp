// Functions of one double that <cmath> lacks: sigmoid, rsqrt, the inverse of erf, digamma, a thread-safe lgamma.
#pragma once

namespace vt::detail::special {

double sigmoid(double x);
double rsqrt(double x);
/// NaN outside [−1, 1], ±∞ at its ends.
double erf_inv(double x);
/// ψ. ∓∞ at ±0, NaN at the negative integers and at −∞.
double digamma(double x);
double lgamma(double x);

}  // namespace vt::detail::special
