// Vector code of log, log2, log1p, asinh, acosh, atanh, and pow.
#include "math.hpp"
#include "tables.hpp"
#include "value.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>
#include <limits>

namespace vt::detail::cpu::math_core {

using namespace math_value;

namespace log_parts {

/// x = 2^k·(1 + f) with 1 + f in [√½, √2), for x > 0; also of subnormals, where `bits` is k before
/// their scaling is undone.
struct Split {
  V k, f, bits;
};

Split split(V x) {
  const bool wide = x.is_f64();
  const V tiny = x < (wide ? 0x1p-1022 : 0x1p-126);
  const V scaled = select(tiny, x * (wide ? 0x1p54 : 0x1p25), x);
  const V bits = scaled.bits();
  const std::int64_t root_half = wide ? 0x3fe6a09e667f3bcd : 0x3f3504f3;  // the bits of √½
  const V k = shift_right_signed(bits - bits.like_int(root_half), wide ? 52 : 23);
  const V m = (bits - (k << (wide ? 52 : 23))).as_float();
  const V exponent = k.to(x.v.dtype);
  return {select(tiny, exponent - (wide ? 54.0 : 25.0), exponent), m - 1.0, k};
}

/// log(1 + f) - f of the interval above.
V remainder(V f) {
  const V half_square = f * f * 0.5;
  if (!f.is_f64()) return mad(f * f * f, polynomial(f, math_tables::log_f32), -half_square);
  // log(1 + f) = 2 atanh(s), s = f / (2 + f), written so that f itself is not rounded.
  const V s = f / (2.0 + f), z = s * s;
  const V r = z * polynomial(z, math_tables::log_f64);
  return mad(s, half_square + r, -half_square);
}

/// Puts in what log gives where x is no positive finite number: log 0 = -inf, log of negative =
/// NaN, inf and NaN stay.
V with_specials(V x, V result) {
  const V regular = (x > 0.0) & (x < infinity);
  return select(regular, result, select(equal(x, 0.0), -infinity, select(x < 0.0, quiet_nan, x)));
}

V joined(V k, V f, V rest) {
  const auto& ln2 = f.is_f64() ? math_tables::ln2_f64 : math_tables::ln2_f32;
  return mad(k, ln2[0], f + mad(k, ln2[1], rest));
}

}  // namespace log_parts

V log(V x) {
  const auto [k, f, bits] = log_parts::split(x);
  return log_parts::with_specials(x, log_parts::joined(k, f, log_parts::remainder(f)));
}

// The constant in two parts, so that near 1, where the result is nearly f·log2(e), it adds no
// error.
V log2(V x) {
  const auto [k, f, bits] = log_parts::split(x);
  const auto& log2e = x.is_f64() ? math_tables::log2e_f64 : math_tables::log2e_f32;
  const V rest = mad(log_parts::remainder(f), log2e[0], f * log2e[1]);
  const auto [high, low] = two_product(f, f.like(log2e[0]));
  return log_parts::with_specials(x, k + (high + (low + rest)));
}

// log(1 + x) with what rounding took from 1 + x put back into f; where k = 0 that makes f = x
// exactly.
V log1p(V x) {
  const V u = 1.0 + x;
  const auto [k, f, bits] = log_parts::split(u);  // u is 0 or no subnormal
  const auto [sum, low] = two_sum(x.like(1.0), x);
  const V down = power_of_two(-bits);
  // beyond it 1 does not count, and 2^-k underflows
  const V correction = select(x < (x.is_f64() ? 0x1p60 : 0x1p30), low * down, 0.0);
  const V g = f + correction;
  const V result = log_parts::with_specials(u, log_parts::joined(k, g, log_parts::remainder(g)));
  return select(abs(x) < (x.is_f64() ? 0x1p-54 : 0x1p-25), x, result);  // keeps the sign of zero
}

V asinh_f64(V x) {
  const V a = abs(x);
  const V small = log1p(a + a * a / (1.0 + sqrt(mad(a, a, 1.0))));
  const V large = log(a) + M_LN2;
  return copysign(select(a < 0x1p28, small, large), x);
}

V acosh_f64(V x) {
  const V t = x - 1.0;
  const V small = log1p(t + sqrt(mad(t, t, t + t)));
  return select(x < 1.0, quiet_nan, select(x < 0x1p28, small, log(x) + M_LN2));
}

V atanh_f64(V x) {
  const V a = abs(x);
  return copysign(0.5 * log1p((a + a) / (1.0 - a)), x);
}

namespace pow_parts {

/// log(x) = first + second to about 2^-64, for x > 0 finite.
std::pair<V, V> log_extended(V x) {
  const auto [k, f, bits] = log_parts::split(x);
  // s = f / (2 + f) in two parts, by one step of long division.
  const auto [den, den_low] = fast_two_sum(f.like(2.0), f);
  const V s = f / den;
  const V s_low = (left_of(f, s, den) - s * den_low) / den;
  // log(1 + f) = 2s + (2/3)s³ + s⁵·T(s²): the first two terms in two parts each.
  auto [z, z_low] = two_product(s, s);
  z_low = mad(s + s, s_low, z_low);
  auto [w, w_low] = two_product(s, z);
  w_low = w_low + (s * z_low + s_low * z);
  const auto& c = math_tables::two_thirds;
  auto [cube, cube_low] = two_product(w, w.like(c[0]));
  cube_low = cube_low + (w * c[1] + w_low * c[0]);
  const V tail = w * z * polynomial(z, math_tables::log_tail_f64);
  const auto& ln2 = math_tables::ln2_log_f64;  // k times its first part is exact
  const auto [a, a_low] = two_sum(k * ln2[0], s + s);
  const auto [sum, sum_low] = two_sum(a, cube);
  const V low = ((s_low + s_low) + (cube_low + tail)) + (mad(k, ln2[1], a_low) + sum_low);
  return fast_two_sum(sum, low);
}

/// |x|^y for finite |x| > 0; the rest is put right by `specials`.
V magnitude_f64(V x, V y) {
  const auto [high, low] = log_extended(x);
  // as good as larger ones, and two_product cannot overflow inside
  y = at_most(at_least(y, -0x1p900), 0x1p900);
  const auto [e, e_low] = two_product(y, high);
  // Where y·log overflows, the products' errors are NaN or meaningless: drop them, and let exp
  // overflow.
  const V all_low = select(abs(e) < 1000.0, mad(y, low, e_low), 0.0);
  const V c = at_most(at_least(y * high, -747.0), 712.0);
  const Exponential r = exponential(c, &all_low);
  return scale(r.p, r.k);
}

/// The same to some 2^-30 for f32, which is taken apart as such: log2(x) and its product with y in
/// f64. Zero and infinity count as 2^∓∞.
V magnitude_f32(V x, V y) {
  const auto [k, f, bits] = log_parts::split(x);
  const V infinite = select(equal(x, 0.0), -infinity, select(equal(x, infinity), infinity, k));
  // f/(2 + f) by one step of Newton's from the quotient in f32, which takes less time than a
  // division in f64.
  const V wide = f.to(DType::f64), den = wide + 2.0, near = (1.0 / (f + 2.0)).to(DType::f64),
          s = wide * mad(near, mad(-near, den, 1.0), near);
  const V log2 = mad(s, polynomial(s * s, math_tables::log2_s), infinite.to(DType::f64));
  // Finite, so that 1^∞ is no NaN.
  constexpr double most = std::numeric_limits<float>::max();
  const V e =
      at_most(at_least(at_most(at_least(y, -most), most).to(DType::f64) * log2, -300.0), 300.0);
  const V t = e + 0x1.8p52, r = e - (t - 0x1.8p52),
          p = mad(r, polynomial(r, math_tables::exp2_f32), 1.0);
  return (p.bits() + (t.bits() << 52)).as_float().to(DType::f32);
}

// Where |x|^y is 0 or infinite without rounding.
V limits(V x, V y, V magnitude) {
  const V a = abs(x), zero = x.like(0.0), one = x.like(1.0), inf = x.like(infinity);
  const V up = y > 0.0;
  V r = magnitude;
  r = select(equal(a, 0.0), select(up, zero, inf), r);
  r = select(equal(a, infinity), select(up, inf, zero), r);
  const V grows = (a > 1.0) ^ (y < 0.0);
  return select(equal(abs(y), infinity), select(equal(a, 1.0), one, select(grows, inf, zero)), r);
}

// The rest of C's table of special cases: signs, and what is no number.
V specials(V x, V y, V magnitude) {
  const V a = abs(x), one = x.like(1.0);
  V r = magnitude;
  const V whole = equal(trunc(y), y), half = y * 0.5;
  const V odd = whole & ~equal(trunc(half), half);
  const V negative = sign_bit(x);
  r = select(negative & odd, -r, r);
  r = select((x < 0.0) & (a < infinity) & ~whole, quiet_nan, r);
  r = select(is_nan(x) | is_nan(y), x + y, r);
  return select(equal(y, 0.0) | equal(x, 1.0), one, r);
}

}  // namespace pow_parts

V pow(V x, V y) {
  const V a = abs(x);
  return pow_parts::specials(x, y,
                             x.is_f64() ? pow_parts::limits(x, y, pow_parts::magnitude_f64(a, y))
                                        : pow_parts::magnitude_f32(a, y));
}

// By squaring. Every number goes with what it was rounded by; that turns NaN where a number
// overflows, and counts no more.
V long_power(V x, unsigned n, bool inverted) {
  struct Pair {
    V high, low;
  };
  const auto product = [](const Pair& a, const Pair& b) {
    const auto [high, lost] = two_product(a.high, b.high);
    return Pair{high, lost + (a.high * b.low + (a.low * b.high + a.low * b.low))};
  };
  Pair base{x, x.like(0)};
  if (inverted) {
    const V inverse = 1.0 / x;
    base = {inverse, left_of(x.like(1), inverse, x) * inverse};
  }
  Pair power{};
  for (; n; n >>= 1) {
    if (n & 1) power = power.high.b ? product(power, base) : base;
    if (n > 1) base = product(base, base);
  }
  const V sum = power.high + power.low;
  return select(is_nan(sum) | equal(power.high, 0.0), power.high, sum);  // −0 too
}

}  // namespace vt::detail::cpu::math_core

namespace vt::detail::cpu::math {

Value long_power(IrBuilder& b, Value x, unsigned n, bool inverted) {
  return math_core::long_power(math_value::V{&b, x}, n, inverted).v;
}
Value log(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::log); }
Value log2(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::log2); }
Value log1p(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::log1p); }
Value asinh(IrBuilder& b, Value x) {
  return math_value::apply(
      b, x, [](math_value::V v) { return math_value::through_f64(v, math_core::asinh_f64); });
}
Value acosh(IrBuilder& b, Value x) {
  return math_value::apply(
      b, x, [](math_value::V v) { return math_value::through_f64(v, math_core::acosh_f64); });
}
Value atanh(IrBuilder& b, Value x) {
  return math_value::apply(
      b, x, [](math_value::V v) { return math_value::through_f64(v, math_core::atanh_f64); });
}
Value pow(IrBuilder& b, Value x, Value y) { return math_value::apply(b, x, y, math_core::pow); }

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
