// Vector code of the gamma family and erf_inv.
#include "../../../trace/numerics/special_tables.hpp"
#include "math.hpp"
#include "tables.hpp"
#include "value.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>
#include <numbers>

namespace vt::detail::cpu::math_core {

using namespace math_value;

namespace gamma_parts {

/// (x-1)(x-2)…(x-k) with k = floor(x - 1½) for 2½ ≤ x < 8½, else 1; and x - k, which is in [1½,
/// 2½).
struct Lowered {
  V product, rest;
};

Lowered lowered(V x) {
  V product = x.like(1.0), rest = x;
  for (int step = 0; step < 6; ++step) {
    const V above = (rest >= 2.5) & (x < 8.5);
    const V below = rest - 1.0;
    product = select(above, product * below, product);
    rest = select(above, below, rest);
  }
  return {product, rest};
}

/// For x ≥ 0. Near 1 and 2, where lgamma is 0, it is t·P(t) with t the exact distance; one
/// logarithm serves all ranges.
V lgamma_positive(V x) {
  const auto [product, rest] = lowered(x);
  const V tiny = x < 0.5, low = x < 1.25, high = x >= 8.5;
  // lgamma(2 + t) = t·P(t); lgamma(1 + t) is log(1 + t) less, lgamma(t) is log(t + t²) less.
  const V t = select(tiny, x, select(low, x - 1.0, rest - 2.0));
  const V l = log(select(tiny, mad(x, x, x), select(low | high, x, product)));
  const V series = t * polynomial(t, math_tables::lgamma_2);
  const V near = select(low, series - l, series + l);
  // Stirling: (x - ½)·(log x - 1) + (½·log 2π - ½) + 1/(12 x) - …
  const V inverse = 1.0 / x;
  const V correction = mad(inverse, polynomial(inverse * inverse, math_tables::stirling),
                           0.5 * std::log(2 * M_PI) - 0.5);
  return select(high, mad(x - 0.5, l - 1.0, correction), near);
}

// Γ(-y)·Γ(y) = -π / (y·sin πy).
V lgamma_f64(V x) {
  const V y = abs(x), direct = lgamma_positive(y);
  const V r = y - V{y.b, y.b->round_even(y.v)};
  const V sine = abs(sin_pi(r));
  const V reflected = select(equal(sine, 0.0), infinity, -log(y * sine * (1 / M_PI)) - direct);
  // closer to 0 lgamma is -log|x| on both sides
  const V result = select((x < -0x1p-60), reflected, direct);
  return select(is_nan(x), x, select(equal(y, infinity), y, result));
}

V digamma_positive(V x) {
  // ψ(x) = ψ(x + 1) - 1/x and downwards ψ(x) = ψ(x - k) + Σ 1/(x - i): the sum is kept as one
  // fraction.
  const V below = x < 1.0, high = x >= 8.0;
  V top = select(below, x.like(-1.0), 0.0), bottom = select(below, x, 1.0),
    rest = select(below, x + 1.0, x);
  for (int step = 0; step < 6; ++step) {
    const V above = (rest > 2.0) & (x < 8.0), less = rest - 1.0;
    top = select(above, mad(top, less, bottom), top);
    bottom = select(above, bottom * less, bottom);
    rest = select(above, less, rest);
  }
  // The zero of ψ in two parts: near it the distance decides all digits.
  const V d = (rest - math_tables::digamma_zero[0]) - math_tables::digamma_zero[1];
  const V near = mad(d, polynomial(d, math_tables::digamma_root), top / bottom);
  const V inverse = 1.0 / x, z = inverse * inverse;
  const V far = log(x) - mad(z, polynomial(z, math_tables::digamma_tail), inverse * 0.5);
  return select(high, far, near);
}

// ψ(1 - x) - ψ(x) = π·cot(πx).
V digamma_f64(V x) {
  const V negative = x < 0.0;
  const V r = x - V{x.b, x.b->round_even(x.v)};
  const V y = select(negative, 1.0 - x, x);
  const V reflected = digamma_positive(y) - M_PI * cot_pi(r);
  V result = select(negative, select(equal(r, 0.0), quiet_nan, reflected), digamma_positive(x));
  // the rest of it does not count, and the cotangent would overflow
  result = select(abs(x) < 0x1p-100, -(1.0 / x), result);
  result = select(equal(x, infinity), x, select(equal(x, -infinity), quiet_nan, result));
  return select(is_nan(x), x, result);
}

V erf_inv_with_ends(V x, V inside) {
  const V a = abs(x), result = select(equal(a, 1.0), copysign(x.like(infinity), x),
                                      select(equal(x, 0.0), x, inside));
  return select(a <= 1.0, result, quiet_nan);
}

// In w = -log(1 - x²) up to w = 5 erf_inv(x)/x is nearly a straight line, beyond in √w.
V erf_inv(V x) {
  if (x.is_f64()) {
    const V w = -log((1.0 - x) * (1.0 + x)), s = sqrt(select(w > 4.0, w, 4.0));
    const V high = select(s > 3.6, polynomial(s - 4.8, math_tables::erf_inv_high),
                          polynomial(s - 2.9, math_tables::erf_inv_middle));
    return erf_inv_with_ends(
        x, x * select(w < 5.0, polynomial(w - 2.5, math_tables::erf_inv_low), high));
  }
  // By what is added to x·√π/2, that constant in two parts: rounding errors are small beside it.
  const V w = -log(x.b->target().fma ? exact_mad(-x, x, x.like(1.0)) : (1.0 - x) * (1.0 + x)),
          s = sqrt(select(w > 4.0, w, 4.0));
  const auto& table = special_tables::erf_inv_low_f32;
  constexpr double start = 0.5 / std::numbers::inv_sqrtpi, first = static_cast<float>(start);
  const V rest =
      mad(polynomial((w - table[0]) * table[1], std::span<const double>(table).subspan(2)), w,
          start - first);
  return erf_inv_with_ends(x, select(w < 5.0, mad(x, rest, x * first),
                                     x * polynomial(s - 3.1, math_tables::erf_inv_high_f32)));
}

}  // namespace gamma_parts

}  // namespace vt::detail::cpu::math_core

namespace vt::detail::cpu::math {

Value lgamma(IrBuilder& b, Value x) {
  return math_value::apply(b, x, [](math_value::V v) {
    return math_value::through_f64(v, math_core::gamma_parts::lgamma_f64);
  });
}
Value digamma(IrBuilder& b, Value x) {
  return math_value::apply(b, x, [](math_value::V v) {
    return math_value::through_f64(v, math_core::gamma_parts::digamma_f64);
  });
}
Value erf_inv(IrBuilder& b, Value x) {
  return math_value::apply(b, x, math_core::gamma_parts::erf_inv);
}

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
