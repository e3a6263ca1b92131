// Inner functions of statistics and the rest: erf, erfc, cbrt, rsqrt, fmod, nextafter.
#include "math.hpp"
#include "math_tables.hpp"
#include "math_value.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>

#include <vt/small_vec.hpp>

namespace vt::detail::cpu::math_core {

using namespace math_value;

namespace erf_parts {

// exp(-a²)·R(a)/(1 + 2a), where R = (1 + 2a)·exp(a²)·erfc(a) is smooth in (a - 4)/(a + 4). For a ≥ ½.
V tail_f64(V a) {
  a = at_most(a, 28.0);  // erfc(28) = 0
  const V t = (a - 4.0) / (a + 4.0);
  const V r = polynomial(t, math_tables::erfcx_f64);
  // a² reaches 784: its rounding error would count 784-fold, so it goes along as a second part.
  const auto [square, low] = two_product(a, a);
  const V minus_low = -low;
  const Exponential e = exponential(-square, &minus_low);
  return scale(e.p * (r / mad(a, 2.0, 1.0)), e.k);
}

V middle(V x) {
  const V z = x * x;
  return mad(x, x.is_f64() ? polynomial(z, math_tables::erf_f64) : polynomial(z, math_tables::erf_f32), x);
}

}  // namespace erf_parts

V erf(V x) {
  const V a = abs(x);
  if (x.is_f64()) return select(a < 0.875, erf_parts::middle(x), copysign(1.0 - erf_parts::tail_f64(at_least(a, 0.5)), x));
  // erf a = 1 - 2^(-a·p(a)); from 4 on it is 1.
  const V c = at_most(a, 4.0);
  const V y = -(c * polynomial(c, math_tables::erf_tail_f32));
  const V t = y + 0x1.8p23, n = t - 0x1.8p23, r = y - n;
  const V tail = mad(r, polynomial(r, math_tables::exp2_f32), 1.0) * power_of_two(t.bits() - t.like(0x1.8p23).bits());
  return select(a < 0.875, erf_parts::middle(x), copysign(1.0 - tail, x));
}

V erfc_f64(V x) {
  const V a = abs(x);
  const V tail = erf_parts::tail_f64(at_least(a, 0.5));
  return select(a < 0.5, 1.0 - erf_parts::middle(x), select(x < 0.0, 2.0 - tail, tail));
}

// A first guess from a third of the exponent, good to 3 %, then Halley steps, each of which triples the digits.
V cbrt(V x) {
  const bool wide = x.is_f64();
  IrBuilder& b = *x.b;
  // Away from the ends of the range, where residuals would underflow or sums overflow, by cubes of powers of two.
  const V a = abs(x), tiny = a<(wide ? 0x1p-900 : 0x1p-90), huge = a>(wide ? 0x1p900 : 0x1p90);
  const V n = a * select(tiny, wide ? 0x1p240 : 0x1p48, select(huge, wide ? 0x1p-240 : 0x1p-48, 1.0, x));
  V guess = n;
  if (wide) {
    // In the upper 32 bits, where division by 3 is a multiplication that vectors have.
    const V high{&b, b.shift_right_logical(b.bitcast(n.v, DType::u64), 32)};
    const V third{&b, b.shift_right_logical((high * high.like_int(0xaaaaaaab)).v, 33)};
    guess = V{&b, b.bitcast(((third + third.like_int(0x2a9f7980)) << 32).v, DType::f64)};
  } else {
    const V bits{&b, b.bitcast(n.v, DType::u32)};
    guess = V{&b, b.bitcast((bits / bits.like_int(3) + bits.like_int(0x2a510000)).v, DType::f32)};
  }
  V t = guess;
  for (int step = 0; step < (wide ? 3 : 2); ++step) {
    const V square = t * t;
    const V residual = mad(-square, t, n), cube = square * t;
    t = t + t * (residual / (cube + cube + n));
  }
  const V r = t * select(tiny, wide ? 0x1p-80 : 0x1p-16, select(huge, wide ? 0x1p80 : 0x1p16, 1.0, x));
  return select((a > 0.0) & (a < infinity), copysign(r, x), x);
}

V rsqrt(V x) { return 1.0 / sqrt(x); }

namespace fmod_parts {

// c - trunc(c/y)·y is exact, as long as nothing is subnormal, even when the quotient had to be rounded to 53 bits: what
// remains is a multiple of both last places and fits. Each round takes 52 bits off the quotient, so nearly always one does.
V reduced(V c, V y) {
  IrBuilder& b = *c.b;
  return {&b, b.while_loop(
                  {c.v}, [&](const Vec<Value>& at) { return b.any((abs(V{&b, at[0]}) >= y).v); },
                  [&](const Vec<Value>& at) {
                    const V now{&b, at[0]};
                    return Vec<Value>{select(abs(now) >= y, exact_mad(-trunc(now / y), y, now), now).v};
                  })[0]};
}

V fmod_f64(V x, V y, bool whole_range) {
  const V a = abs(y);
  const V regular = (abs(x) < infinity) & (a > 0.0) & (a < infinity);
  V r = select(regular, x, 0.0), divisor = select(regular, a, 1.0);
  const V low = divisor < 0x1p-900;
  if (whole_range) {  // of f64; numbers that come from f32 need none of this
    // The quotient itself may overflow: reduce by multiples of y in between.
    r = reduced(r, select(divisor < 0x1p-600, (divisor * 0x1p540) * 0x1p534, infinity));
    r = reduced(r, select(divisor < 0x1p380, divisor * 0x1p640, infinity));
    // Away from the subnormals, exactly, and back at the end.
    r = select(low, r * 0x1p400, r);
    divisor = select(low, divisor * 0x1p400, divisor);
  }
  r = reduced(r, divisor);
  // A quotient that was rounded up leaves a remainder of the other sign.
  const V crossed = ((r < 0.0) & (x > 0.0)) | ((r > 0.0) & (x < 0.0));
  r = select(crossed, r + copysign(divisor, x), r);
  if (whole_range) r = select(low, r * 0x1p-400, r);
  const V special = select(equal(a, infinity) & (abs(x) < infinity), x, quiet_nan);
  return select(regular, copysign(r, x), select(is_nan(x) | is_nan(y), x + y, special));
}

}  // namespace fmod_parts

V fmod(V x, V y) {
  if (x.is_f64()) return fmod_parts::fmod_f64(x, y, true);
  return fmod_parts::fmod_f64(x.to(DType::f64), y.to(DType::f64), false).to(DType::f32);
}

// The bits of floats of one sign count upwards like integers.
V nextafter(V x, V y) {
  const V bits = x.bits(), one = bits.like_int(1);
  const V away = (x < y) ^ (x < 0.0);  // up for positive x, down for negative
  const V stepped = select(away, bits + one, bits - one).as_float();
  const V least = copysign(one.as_float(), y);
  const V moved = select(equal(x, 0.0), least, stepped);
  return select(is_nan(x) | is_nan(y), x + y, select(equal(x, y), y, moved));
}

}  // namespace vt::detail::cpu::math_core

namespace vt::detail::cpu::math {

Value erf(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::erf); }
Value erfc(IrBuilder& b, Value x) {
  return math_value::apply(b, x, [](math_value::V v) { return math_value::through_f64(v, math_core::erfc_f64); });
}
Value cbrt(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::cbrt); }
Value rsqrt(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::rsqrt); }
Value fmod(IrBuilder& b, Value x, Value y) { return math_value::apply(b, x, y, math_core::fmod); }
Value nextafter(IrBuilder& b, Value x, Value y) {
  if (x.dtype == DType::f32 || x.dtype == DType::f64) return math_core::nextafter({&b, x}, {&b, y}).v;
  // Of the 16-bit floats the neighbours are on their own grid: count in their bits.
  const auto bits = [&](Value v) { return b.bitcast(v, DType::i16); };
  const Value one = b.integer(DType::i16, 1, x.lanes);
  const Value away = b.bit_xor(b.compare(Compare::lt, x, y), b.compare(Compare::lt, x, b.zero_like(x)));
  const Value stepped = b.bitcast(b.select(away, b.add(bits(x), one), b.sub(bits(x), one)), x.dtype);
  const Value least = b.copysign(b.bitcast(one, x.dtype), y);
  const Value moved = b.select(b.compare(Compare::eq, x, b.zero_like(x)), least, stepped);
  const Value nan = b.bit_or(b.is_nan(x), b.is_nan(y));
  return b.select(nan, b.add(x, y), b.select(b.compare(Compare::eq, x, y), y, moved));
}

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
