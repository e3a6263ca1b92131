// Vector code of exp, exp2, expm1, sinh, cosh, tanh, sigmoid.
#include "math.hpp"
#include "tables.hpp"
#include "value.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::math_core {

using namespace math_value;

namespace exp_parts {

// Adding this constant leaves round-to-even(x) in the low bits of the significand: one addition
// gives the integer both as a float and as bits.
double rounder(V x) { return x.is_f64() ? 0x1.8p52 : 0x1.8p23; }

V integer_bits(V t) { return t.bits() - t.like(rounder(t)).bits(); }

}  // namespace exp_parts

Exponential exponential(V x, const V* low, bool careful) {
  const auto& ln2 = x.is_f64() ? math_tables::ln2_f64 : math_tables::ln2_f32;
  const double log2e = x.is_f64() ? math_tables::log2e_f64[0] : math_tables::log2e_f32[0];
  const V t = mad(x, log2e, exp_parts::rounder(x));
  const V n = t - exp_parts::rounder(x);
  const V high = mad(n, -ln2[0], x);
  V r = mad(n, -ln2[1], high);
  if (low) r = r + *low;
  const V q =
      x.is_f64() ? polynomial(r, math_tables::exp_f64) : polynomial(r, math_tables::exp_f32);
  const V k = exp_parts::integer_bits(t);
  if (!careful) return {mad(r * r, q, r) + 1.0, k};
  const V lost = mad(n, -ln2[1], high - r);  // what rounding took from r
  const auto [sum, sum_low] = fast_two_sum(x.like(1.0), r);
  return {sum + (sum_low + mad(r * r, q, lost)), k};
}

// Beyond these the result is 0 or infinite anyway, also when halved (cosh) before it is rounded.
V clamped_below(V x) { return at_least(x, x.is_f64() ? -747.0 : -105.0); }
V clamped(V x) { return at_most(clamped_below(x), x.is_f64() ? 712.0 : 91.0); }

V exp(V x) {
  const Exponential e = exponential(clamped(x));
  return scale(e.p, e.k);
}

V exp_halved(V x) {
  const Exponential e = exponential(clamped(x));
  return scale(e.p, e.k - e.k.like_int(1));
}

V exp2(V x) {
  const V c =
      x.is_f64() ? at_most(at_least(x, -1077.0), 1026.0) : at_most(at_least(x, -152.0), 130.0);
  const V t = c + exp_parts::rounder(c), r = c - (t - exp_parts::rounder(c));
  const V p =
      x.is_f64() ? polynomial(r, math_tables::exp2_f64) : polynomial(r, math_tables::exp2_f32);
  return scale(mad(r, p, 1.0), exp_parts::integer_bits(t));
}

// 2^n·(e^r - 1) + (2^n - 1), on half of 2^n so that n = 1024 does not overflow.
V expm1(V x) {
  // The upper limits overflow already, but leave 2^(n-1) finite.
  const V c = x.is_f64() ? at_most(at_least(x, -40.0), 709.9) : at_most(at_least(x, -20.0), 89.0);
  const auto& ln2 = x.is_f64() ? math_tables::ln2_f64 : math_tables::ln2_f32;
  const double log2e = x.is_f64() ? math_tables::log2e_f64[0] : math_tables::log2e_f32[0];
  const V t = mad(c, log2e, exp_parts::rounder(c));
  const V n = t - exp_parts::rounder(c);
  const V high = mad(n, -ln2[0], c), r = mad(n, -ln2[1], high);
  const V lost = mad(n, -ln2[1], high - r);  // what rounding took from r
  const V q =
      x.is_f64() ? polynomial(r, math_tables::exp_f64) : polynomial(r, math_tables::exp_f32);
  const V grown = r + mad(r * r, q, lost);
  const V k = exp_parts::integer_bits(t), one = k.like_int(1);
  const V half = power_of_two(k - one);
  const V result = mad(grown, half, half - 0.5) * 2.0;
  // keeps the sign of zero
  const V near_zero = select(abs(x) < (x.is_f64() ? 0x1p-54 : 0x1p-25), x, grown);
  return select(equal(k, k.like_int(0)), near_zero, result);
}

V sinh(V x) {
  const V a = abs(x), z = x * x;
  const V p =
      x.is_f64() ? polynomial(z, math_tables::sinh_f64) : polynomial(z, math_tables::sinh_f32);
  const V small = mad(x * z, p, x);
  const V e = exp_halved(a);
  return select(a < 1.0, small, copysign(e - 0.25 / e, x));
}

V cosh(V x) {
  const V e = exp_halved(abs(x));
  return e + 0.25 / e;
}

// h/(h + 1) with h = (e^(2|x|) - 1)/2 = 2^n·p + (2^n - 1)/2, where p = (e^(2r) - 1)/2 = r + r²·q. n
// is 0 up to 0.26: there the quotient's error counts little in r + (r²·q - h·quotient).
V tanh(V x) {
  const auto& ln2 = x.is_f64() ? math_tables::ln2_f64 : math_tables::ln2_f32;
  const double log2e = x.is_f64() ? math_tables::log2e_f64[0] : math_tables::log2e_f32[0];
  const V a = at_most(abs(x), x.is_f64() ? 20.0 : 10.0);  // from there on it is 1
  const V t = mad(a, 2 * log2e, -0.25) + exp_parts::rounder(x), n = t - exp_parts::rounder(x);
  // Multiplied exactly, n times ln 2 in one part is near enough, as n is small.
  const V r = x.b->target().fma ? mad(n, -(ln2[0] + ln2[1]) / 2, a)
                                : mad(n, -ln2[1] / 2, mad(n, -ln2[0] / 2, a));
  const V q = x.is_f64() ? polynomial(r, math_tables::half_expm1_f64)
                         : polynomial(r, math_tables::half_expm1_f32);
  const V rest = r * r * q, two_n = power_of_two(exp_parts::integer_bits(t));
  const V h = mad(two_n, r + rest, mad(two_n, 0.5, -0.5)), quotient = h / (h + 1.0);
  return copysign(select(equal(n, 0.0), r + mad(-h, quotient, rest), quotient), x);
}

// With e = exp(-|x|) nothing overflows, and the left tail keeps its relative accuracy down to the
// subnormals. The errors of e, of 1 + e and of the division would add up to more than 2 ulp: the
// last two are taken out by one corrective step.
V sigmoid(V x) {
  const Exponential parts = exponential(clamped_below(-abs(x)), nullptr, true);
  const V e = scale(parts.p, parts.k), left = sign_bit(x), top = select(left, e, x.like(1.0));
  const auto [den, den_low] = fast_two_sum(x.like(1.0), e);
  // not top / den, so that sigmoid(-x) beside it has the same quotient
  const V inverse = 1.0 / den, q = top * inverse;
  return mad(mad(-q, den_low, left_of(top, q, den)), inverse, q);
}

}  // namespace vt::detail::cpu::math_core

namespace vt::detail::cpu::math {

Value exp(IrBuilder& b, Value x) {
  return math_value::apply(b, x, [](math_value::V v) { return math_core::exp(v); });
}
Value exp2(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::exp2); }
Value expm1(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::expm1); }
Value sinh(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::sinh); }
Value cosh(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::cosh); }
Value tanh(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::tanh); }
Value sigmoid(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::sigmoid); }

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
