// Vector code of sin, cos, tan with argument reduction of any size, and of the inverse functions.
#include "math.hpp"
#include "tables.hpp"
#include "value.hpp"

#if VT_HAS_LLVM_HEADERS

#include <cmath>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu::math_core {

using namespace math_value;

namespace trig_parts {

/// x = quadrant·π/2 + r + low with |r| ≤ π/4 (a little more); quadrant is an integer of x's width,
/// good modulo 4.
struct Angle {
  V quadrant, r, low;
};

// π/2 in parts P₁ + P₂ + P₃: x - q·P₁ is exact, and what the second subtraction loses is kept. The
// f64 parts are so short that q·P₂ is exact too; of f32 its product has a low half.
Angle reduced_by(V x, const double* parts, double rounder) {
  const V t = mad(x, 2.0 / M_PI, rounder);
  const V q = t - rounder;
  const V first = mad(q, -parts[0], x);
  const V product = q * parts[1];
  const V r = first - product;
  V low = (first - r) - product;
  if (!x.is_f64()) low = low - mad(q, parts[1], -product);
  low = mad(q, -parts[2], low);
  return {t.bits() - t.like(rounder).bits(), r, low};
}

// Largest |x| of the reduction above. f32: q has 17 bits. f64: q has 20, with 33-bit parts the
// products are exact.
double limit(V x) { return x.is_f64() ? 1.0e6 : 1.0e5; }

Angle reduced(V x) {
  if (x.is_f64()) return reduced_by(x, math_tables::half_pi_33, 0x1.8p52);
  if (x.b->target().fma) return reduced_by(x, math_tables::half_pi_f32, 0x1.8p23);
  // Without a fused multiply-add the products of f32 are not exact, those in f64 are.
  const Angle wide = reduced_by(x.to(DType::f64), math_tables::half_pi_33, 0x1.8p52);
  const V r = wide.r.to(DType::f32);
  return {wide.quadrant.to(DType::i32), r, (wide.r - r.to(DType::f64)).to(DType::f32)};
}

V sine(V r, V low) {
  const V z = r * r;
  const V p =
      r.is_f64() ? polynomial(z, math_tables::sin_f64) : polynomial(z, math_tables::sin_f32);
  return r + mad(r * z, p, low);
}

// 1 - z/2 + …, with what the subtraction from 1 loses put back.
V cosine(V r, V low) {
  const V z = r * r, half = z * 0.5, w = 1.0 - half;
  const V p =
      r.is_f64() ? polynomial(z, math_tables::cos_f64) : polynomial(z, math_tables::cos_f32);
  return w + (((1.0 - w) - half) + mad(z * z, p, -(r * low)));
}

V tangent(const Angle& a) {
  const V z = a.r * a.r;
  const V p =
      a.r.is_f64() ? polynomial(z, math_tables::tan_f64) : polynomial(z, math_tables::tan_f32);
  // tan(r + low) = tan r + low·(1 + tan² r); 1 + z is near enough for so small a term.
  const V rest = mad(a.r * z, p, a.low * (1.0 + z)), t = a.r + rest;
  // -1/t with the part of t that rounding took: -1/(t + d) = -(1 - d/t)/t.
  const V lost = rest - (t - a.r);
  const V inverse = -1.0 / t;
  const V odd = equal(a.quadrant & a.quadrant.like_int(1), a.quadrant.like_int(1));
  return select(odd, mad(inverse * inverse, lost, inverse), t);
}

// sin x = sin or cos of r by the quadrant's low bit, negated by its second; cos x = sin(x + π/2).
V sine_or_cosine(const Angle& a, int shift) {
  const V q = a.quadrant + a.quadrant.like_int(shift);
  const V one = q.like_int(1), two = q.like_int(2);
  const V value = select(equal(q & one, one), cosine(a.r, a.low), sine(a.r, a.low));
  return select(equal(q & two, two), -value, value);
}

enum class Which { sin, cos, tan };

V finish(const Angle& a, Which which) {
  return which == Which::tan ? tangent(a) : sine_or_cosine(a, which == Which::cos ? 1 : 0);
}

// Rare, so the C library, SIMD lane by lane. Vector code for it was as long as all the rest of a
// kernel to compile, and a loop of calls an eighth of it.
V large(V x, Which which) {
  IrBuilder& b = *x.b;
  const DType d = x.v.dtype;
  const int simd_lanes = x.v.simd_lanes;
  const std::string name = std::string("vt_simd_") +
                           (which == Which::sin   ? "sin"
                            : which == Which::cos ? "cos"
                                                  : "tan") +
                           (d == DType::f32 ? "f" : "");
  const Value array = b.stack_array(d, simd_lanes);
  b.store(array, x.v);
  b.call_runtime(name.c_str(), {array, b.index(simd_lanes)});
  return {&b, b.load(array, d, simd_lanes)};
}

V angle_function(V x, Which which) {
  IrBuilder& b = *x.b;
  const V beyond = ~(abs(x) <= limit(x));  // NaN too
  // Below 2^-12 (2^-27) the sine and tangent round to x, which also keeps the sign of zero.
  V fast = finish(reduced(x), which);
  if (which != Which::cos) fast = select(abs(x) < (x.is_f64() ? 0x1p-27 : 0x1p-13), x, fast);
  // Chosen SIMD lane by SIMD lane: a value's bits must not depend on its neighbours.
  return {&b,
          b.if_else(
              b.any(beyond.v), [&] { return Vec<Value>{select(beyond, large(x, which), fast).v}; },
              [&] { return Vec<Value>{fast.v}; })[0]};
}

}  // namespace trig_parts

V sin(V x) { return trig_parts::angle_function(x, trig_parts::Which::sin); }
V cos(V x) { return trig_parts::angle_function(x, trig_parts::Which::cos); }
V tan(V x) { return trig_parts::angle_function(x, trig_parts::Which::tan); }

namespace trig_parts {

// In quarter turns: exact, but for the multiplication by π, of which both parts are kept.
Angle rotated(V r) {
  const V doubled = r + r, quadrant = V{r.b, r.b->round_even(doubled.v)}, rest = r - quadrant * 0.5;
  const auto& pi = r.is_f64() ? math_tables::pi_f64 : math_tables::pi_f32;
  const auto [high, low] = two_product(rest, rest.like(pi[0]));
  return {quadrant.to(r.is_f64() ? DType::i64 : DType::i32), high, mad(rest, pi[1], low)};
}

}  // namespace trig_parts

V sin_pi(V r) { return trig_parts::sine_or_cosine(trig_parts::rotated(r), 0); }
V cot_pi(V r) {  // -tan of a quarter turn more
  trig_parts::Angle a = trig_parts::rotated(r);
  a.quadrant = a.quadrant + a.quadrant.like_int(1);
  return -trig_parts::tangent(a);
}

namespace arc_parts {

/// For |x| ≤ ½: asin x = s + rest with s = |x|; beyond: asin x = π/2 - 2(s + rest) with
/// s = √((1 - |x|)/2).
struct Arc {
  V beyond, s, rest;
};

Arc arc(V x) {
  const V a = abs(x), beyond = a > 0.5;
  const V z = select(beyond, mad(a, -0.5, 0.5), a * a);
  const V s = select(beyond, sqrt(z), a);
  const V p =
      x.is_f64() ? polynomial(z, math_tables::asin_f64) : polynomial(z, math_tables::asin_f32);
  return {beyond, s, s * (z * p)};
}

double pi_part(V x, int k) { return x.is_f64() ? math_tables::pi_f64[k] : math_tables::pi_f32[k]; }

}  // namespace arc_parts

V asin(V x) {
  using arc_parts::pi_part;
  const auto [beyond, s, rest] = arc_parts::arc(x);
  const auto [sum, lost] = fast_two_sum(x.like(0.5 * pi_part(x, 0)), -2.0 * s);
  const V far = sum + (lost + mad(rest, -2.0, 0.5 * pi_part(x, 1)));
  return copysign(select(beyond, far, s + rest), x);
}

V acos(V x) {
  using arc_parts::pi_part;
  const auto [beyond, s, rest] = arc_parts::arc(x);
  const V negative = sign_bit(x);
  const V twice = 2.0 * (s + rest);
  const V mirrored = (pi_part(x, 0) - 2.0 * s) + (pi_part(x, 1) - 2.0 * rest);
  const V signed_s = copysign(s, x), signed_rest = select(negative, -rest, rest);
  const V middle = 0.5 * pi_part(x, 0) - (signed_s - (0.5 * pi_part(x, 1) - signed_rest));
  return select(beyond, select(negative, mirrored, twice), middle);
}

namespace arc_parts {

/// atan(t) - t for |t| ≤ ½.
V atan_rest(V t) {
  const V z = t * t;
  const V p =
      t.is_f64() ? polynomial(z, math_tables::atan_f64) : polynomial(z, math_tables::atan_f32);
  return t * (z * p);
}

}  // namespace arc_parts

// |x| in three parts at ½ and 2: x, (x - 1)/(x + 1), -1/x, with 0, π/4, π/2 added. One division for
// all. In the middle part x - 1 is exact.
V atan(V x) {
  using arc_parts::pi_part;
  const V a = abs(x), far = a > 2.0, middle = a > 0.5;
  const V top = select(far, -1.0, select(middle, a - 1.0, a));
  const V bottom = select(far, a, select(middle, a + 1.0, x.like(1.0)));
  const V t = top / bottom, rest = arc_parts::atan_rest(t);
  const auto offset = [&](int k) {
    return select(far, 0.5 * pi_part(x, k), select(middle, x.like(0.25 * pi_part(x, k)), 0.0));
  };
  return copysign(offset(0) + (t + (rest + offset(1))), x);
}

V atan2(V y, V x) {
  using arc_parts::pi_part;
  const double huge = x.is_f64() ? 0x1p1020 : 0x1p124;
  const V ax = abs(x), ay = abs(y), steep = ay > ax;
  V large = select(steep, ay, ax), small = select(steep, ax, ay);
  const V both = equal(small, infinity);  // both infinite: the diagonal
  large = select(both | equal(large, 0.0), 1.0, large);
  small = select(both, 1.0, small);
  const V down = large > huge;  // so that small + large cannot overflow
  large = select(down, large * 0x1p-4, large);
  small = select(down, small * 0x1p-4, small);
  const V middle = small > large * 0.5;
  const V t = select(middle, small - large, small) / select(middle, small + large, large);
  const V rest = arc_parts::atan_rest(t);
  // angle = base + (t + rest): base moves to π/2 - base and π - base with the octant, and t + rest
  // changes sign.
  V high = select(middle, x.like(0.25 * pi_part(x, 0)), 0.0),
    low = select(middle, x.like(0.25 * pi_part(x, 1)), 0.0);
  V moved = t, moved_rest = rest;
  const auto reflect = [&](V when, double factor) {
    const V full = x.like(factor * pi_part(x, 0));
    const auto [sum, lost] = fast_two_sum(full, -high);
    low = select(when, (factor * pi_part(x, 1) - low) + lost, low);
    high = select(when, sum, high);
    moved = select(when, -moved, moved);
    moved_rest = select(when, -moved_rest, moved_rest);
  };
  reflect(steep, 0.5);
  reflect(sign_bit(x), 1.0);
  const V angle = high + (moved + (moved_rest + low));
  return select(is_nan(x) | is_nan(y), x + y, copysign(angle, y));
}

}  // namespace vt::detail::cpu::math_core

namespace vt::detail::cpu::math {

Value sin(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::sin); }
Value cos(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::cos); }
Value tan(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::tan); }
Value asin(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::asin); }
Value acos(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::acos); }
Value atan(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::atan); }
Value atan2(IrBuilder& b, Value y, Value x) { return math_value::apply(b, y, x, math_core::atan2); }

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
