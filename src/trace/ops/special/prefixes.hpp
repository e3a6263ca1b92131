// What the functions of gamma and beta distributions share: sums, products and powers with what
// their rounding has lost, and what is left of Γ beside Stirling's powers.
#pragma once

#include <limits>
#include <utility>

#include "../support/element_functions.hpp"
#include "formulas.hpp"

namespace vt::detail::incomplete {

using namespace element_functions;
using namespace formulas;
inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

constexpr double least_normal = std::numeric_limits<double>::min();
/// Terms below this part of the sum are its last digit; the derivatives' terms are larger by a
/// logarithm.
inline constexpr double least_part = 0x1p-62, least_part_of_slopes = 0x1p-80;

template <std::size_t size>
Tensor fitted(const Tensor& x, const double (&table)[size]) {
  const Tensor u = (x - table[0]) * table[1];
  Tensor sum = table[size - 1];
  for (std::size_t k = size - 1; k-- > 2;) sum = sum * u + table[k];
  return sum;
}
/// Γ(x) / (√(2π) xˣ⁻½ e⁻ˣ) for x ≥ 8½.
Tensor gamma_star(const Tensor& x);
/// What a + b is short of the sum of both.
Tensor lost_in_sum(const Tensor& a, const Tensor& b, const Tensor& sum);
/// A number as the sum of one of 26 bits and the rest, so that products of the former are exact.
std::pair<Tensor, Tensor> halves(const Tensor& t);
/// What a · b is short of the true product.
Tensor lost_in_product(const Tensor& a, const Tensor& b, const Tensor& product);
/// ((top + lost) / bottom)^exponent as a power and what the quotient's rounding, which that
/// magnifies, adds to its logarithm.
std::pair<Tensor, Tensor> parts_of_power(const Tensor& top, const Tensor& bottom,
                                         const Tensor& exponent, const Tensor& lost);
/// The same as one number, where the exponent is far below 2^52.
Tensor power_of_quotient(const Tensor& top, const Tensor& bottom, const Tensor& exponent,
                         const Tensor& lost = number(0));
/// A number with what it is short of the true one.
struct Pair {
  Tensor value, lost;
};
Pair sum_of(const Tensor& a, const Tensor& b);
/// a φ with φ = μ − log(1 + μ), μ = d/a between −½ and 1. That is d t − 2 a (t³/3 + t⁵/5 + …) with
/// t = d/(2 a + d). It is an exponent, up to 745, which magnifies its rounding errors: the first
/// three terms are taken in pieces whose products are exact.
Pair exponent_of_excess(const Tensor& a, const Tensor& d);
Tensor exponential_of_less(const Pair& exponent);

/// How many derivatives densities have at the ends of their range.
inline constexpr int end_derivatives = 5;

}  // namespace vt::detail::incomplete
