// Sums, products and powers with what their rounding has lost.
#include "prefixes.hpp"

#include "../../numerics/special_math.hpp"

namespace vt::detail::incomplete {

Tensor gamma_star(const Tensor& x) {
  return fitted(1.0 / maximum(x, 8.5), special_tables::gamma_star);
}

Tensor lost_in_sum(const Tensor& a, const Tensor& b, const Tensor& sum) {
  const Tensor t = sum - a;
  return stop_gradient((a - (sum - t)) + (b - t));
}

std::pair<Tensor, Tensor> halves(const Tensor& t) {
  const Tensor high = reduce_precision(t, 11, 25);
  return {high, t - high};
}

Tensor lost_in_product(const Tensor& a, const Tensor& b, const Tensor& product) {
  const auto [x, x_low] = halves(a);
  const auto [y, y_low] = halves(b);
  return stop_gradient((((x * y - product) + x * y_low) + x_low * y) + x_low * y_low);
}

std::pair<Tensor, Tensor> parts_of_power(const Tensor& top, const Tensor& bottom,
                                         const Tensor& exponent, const Tensor& lost) {
  const Tensor quotient = top / bottom, product = quotient * bottom,
               rest = (top - product) - lost_in_product(quotient, bottom, product) + lost;
  return {pow(quotient, exponent), stop_gradient(exponent * rest / top)};
}

Tensor power_of_quotient(const Tensor& top, const Tensor& bottom, const Tensor& exponent,
                         const Tensor& lost) {
  const auto [power, added] = parts_of_power(top, bottom, exponent, lost);
  return power * (1.0 + added);
}

Pair sum_of(const Tensor& a, const Tensor& b) {
  const Tensor sum = a + b;
  return {sum, lost_in_sum(a, b, sum)};
}

Pair exponent_of_excess(const Tensor& a, const Tensor& d) {
  const Pair s = sum_of(2.0 * a, d);
  const auto [d_high, d_low] = halves(d);
  const Tensor s_high = halves(s.value).first, s_low = (s.value - s_high) + s.lost;
  const Tensor t = d / s.value, t_high = reduce_precision(t, 11, 9),
               t_low = ((d - t_high * s_high) - t_high * s_low) / s.value;
  const Tensor square = t_high * t_high, cube = square * t_high,
               a_high = reduce_precision(a, 11, 21), a_low = a - a_high;
  const Tensor first = d_high * t_high, first_rest = d_low * t_high + d * t_low;
  const Tensor twice = 2.0 * (a_high * cube), second = halves(twice / 3.0).first;
  const Tensor second_rest = (twice - 3.0 * second) / 3.0 + 2.0 / 3.0 * (a_low * cube) +
                             2.0 * a * (t_low * (square + t_low * (t_high + t_low / 3.0)));
  const Tensor z = t * t, mixed = t * t_high, third = 2.0 * (a * (cube * square)) / 5.0;
  constexpr int terms = 16;
  Tensor series = number(1.0 / (2 * terms + 5));
  for (int k = terms + 2; k-- > 3;) series = series * z + 1.0 / (2 * k + 1);
  const Tensor third_rest = 2.0 * a *
                            (t_low * (z * (z + mixed + square) + square * (mixed + square)) / 5.0 +
                             t * (z * z * z) * series);
  const Pair high = sum_of(first, -second);
  return sum_of(high.value, (first_rest - (third + (second_rest + third_rest))) + high.lost);
}

Tensor exponential_of_less(const Pair& exponent) {
  return exp(-exponent.value) * (1.0 - exponent.lost);
}

}  // namespace vt::detail::incomplete
