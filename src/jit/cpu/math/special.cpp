// Vector code of erf, erfc, cbrt, rsqrt, fmod, nextafter.
#include "../../../trace/numerics/special_tables.hpp"
#include "math.hpp"
#include "tables.hpp"
#include "value.hpp"

#if VT_HAS_LLVM_HEADERS

#include <algorithm>
#include <bit>
#include <cmath>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::cpu::math_core {

using namespace math_value;

namespace erf_parts {

// exp(-a²)·R(a)/(1 + 2a), where R = (1 + 2a)·exp(a²)·erfc(a) is smooth in (a - 4)/(a + 4). For a ≥
// ½.
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
  return mad(
      x, x.is_f64() ? polynomial(z, math_tables::erf_f64) : polynomial(z, math_tables::erf_f32), x);
}

/// numbers[low four bits of index], for all SIMD lanes in one instruction of AVX-512.
V chosen(V index, const char* name, const double (&numbers)[16]) {
  IrBuilder& b = *index.b;
  std::uint64_t bits[16];
  for (int k = 0; k < 16; ++k)
    bits[k] = std::bit_cast<std::uint32_t>(static_cast<float>(numbers[k]));
  const Value table = b.constant_array(name, DType::f32, bits);
  const int simd_lanes = index.v.simd_lanes;
  if (simd_lanes == 1)
    return {&b, b.load(b.offset(table, DType::f32,
                                b.convert((index & index.like_int(15)).v, DType::i64)),
                       DType::f32)};
  const Value all = b.load(table, DType::f32, 16, 64);
  Value found;
  for (int first = 0; first < simd_lanes; first += 16) {
    int of[16];
    for (int k = 0; k < 16; ++k) of[k] = std::min(first + k, simd_lanes - 1);
    const Value part = simd_lanes == 16 ? index.v : b.shuffle(index.v, index.v, of);
    const Value sixteen = IrBuilder::wrap(
        b.intrinsic("llvm.x86.avx512.permvar.sf.512", {}, {all.ref, part.ref}), DType::f32, 16);
    const Value some =
        simd_lanes - first >= 16 ? sixteen : b.slice_simd_lanes(sixteen, 0, simd_lanes - first);
    found = first == 0 ? some : b.concat_simd_lanes(found, some);
  }
  return {&b, found};
}

// Polynomials around multiples of 1/4, whose coefficients are taken from registers: three fifths of
// the operations that the other way takes.
V in_pieces(V x) {
  const V a = abs(x), shifted = at_most(a, 3.75) + 0x1.8p21, middle = shifted - 0x1.8p21,
          d = at_most(a, 4.0) - middle, piece = shifted.bits();
  constexpr const char* names[] = {"erf_pieces_0", "erf_pieces_1", "erf_pieces_2",
                                   "erf_pieces_3", "erf_pieces_4", "erf_pieces_5"};
  V p = chosen(piece, names[5], math_tables::erf_pieces_f32[5]);
  for (int j = 4; j >= 0; --j) {
    const V c = chosen(piece, names[j], math_tables::erf_pieces_f32[j]);
    p = mad(p, d, j > 0 ? c : c + select(middle < 1.125, d, 0.0));
  }
  return copysign(p, x);
}

}  // namespace erf_parts

V erf(V x) {
  const V a = abs(x);
  if (x.is_f64())
    return select(a < 0.875, erf_parts::middle(x),
                  copysign(1.0 - erf_parts::tail_f64(at_least(a, 0.5)), x));
  if (x.b->target().vector_bytes == 64) return erf_parts::in_pieces(x);
  // erf a = 1 - 2^(-a·p(a)); from 4 on it is 1.
  const V c = at_most(a, 4.0);
  const V y = -(c * polynomial(c, math_tables::erf_tail_f32));
  const V t = y + 0x1.8p23, n = t - 0x1.8p23, r = y - n;
  const V tail = mad(r, polynomial(r, math_tables::exp2_f32), 1.0) *
                 power_of_two(t.bits() - t.like(0x1.8p23).bits());
  return select(a < 0.7, erf_parts::middle(x), copysign(1.0 - tail, x));
}

V erfc_f64(V x) {
  const V a = abs(x);
  const V tail = erf_parts::tail_f64(at_least(a, 0.5));
  return select(a < 0.5, 1.0 - erf_parts::middle(x), select(x < 0.0, 2.0 - tail, tail));
}

namespace erf_parts {

struct Fraction {
  V high, low;
};
/// A polynomial of scripts/special_coefficients in u, the place in its interval. Its first
/// coefficient is most of it: to that the rest is added with what rounding loses.
template <std::size_t size>
Fraction fitted(V u, const double (&table)[size]) {
  const V rest = polynomial(u, std::span<const double>(table + 3, size - 3));
  const double first = static_cast<float>(table[2]);
  const auto [high, low] = fast_two_sum(u.like(first), mad(u, rest, table[2] - first));
  return {high, low};
}

/// x/y and what is left of it.
Fraction quotient(const Fraction& x, const Fraction& y) {
  const V q = x.high / y.high;
  return {q, (left_of(x.high, q, y.high) + (x.low - q * y.low)) / y.high};
}

/// fitted(t)/(1 + slope·x) · exp(−half·x²) with t = (x − 2)/(x + 2); all rounding errors but the
/// exponential's come back with the last one. One division serves both quotients.
template <std::size_t size>
V gaussian(const double (&table)[size], V x, double slope, double half) {
  const auto [square, square_low] = two_product(x, x);
  const auto [den, den_low] = two_sum(x * slope, x.like(1.0));
  const V shifted = x + 2.0, inverse = 1.0 / (shifted * den), over = inverse * shifted;
  const Fraction numerator = fitted((x - 2.0) * (inverse * den), table);
  const V q = numerator.high * over,
          q_low = (left_of(numerator.high, q, den) + (numerator.low - q * den_low)) * over;
  const Exponential e = exponential(square * -half, nullptr, true);
  return scale(mad(e.p, q, e.p * (q_low - q * (square_low * half))), e.k);
}

}  // namespace erf_parts

V erfc_f32(V x) {
  const V a = abs(x), c = at_most(a, 11.0);  // erfc(11) = 0
  const V tail = erf_parts::gaussian(special_tables::erfcx_f32, c, 2.0, 1.0);
  return select(a < 0.5, 1.0 - erf_parts::middle(x), select(x < 0.0, 2.0 - tail, tail));
}

namespace erf_parts {

/// Φ(−a) as exp(−a²/2) times polynomials around the middles of sixteen intervals, whose
/// coefficients are taken from registers.
V ndtr_in_pieces(V a) {
  const V bits = (a + 1.0).bits();
  const V middle = ((bits & bits.like_int(~0x1fffff)) | bits.like_int(0x100000)).as_float() - 1.0,
          d = a - middle;
  const V piece = shift_right_signed(bits, 21);
  constexpr const char* names[] = {"ndtr_pieces_0", "ndtr_pieces_1", "ndtr_pieces_2",
                                   "ndtr_pieces_3", "ndtr_pieces_4", "ndtr_pieces_5",
                                   "ndtr_pieces_6"};
  V p = chosen(piece, names[6], math_tables::ndtr_pieces_f32[6]);
  for (int j = 5; j > 0; --j)
    p = mad(p, d, chosen(piece, names[j], math_tables::ndtr_pieces_f32[j]));
  const auto [size, size_low] =
      fast_two_sum(chosen(piece, names[0], math_tables::ndtr_pieces_f32[0]), p * d);
  const auto [square, square_low] = two_product(a, a);
  const Exponential e = exponential(square * -0.5, nullptr, true);
  return scale(mad(e.p, size, e.p * mad(size, square_low * -0.5, size_low)), e.k);
}

}  // namespace erf_parts

V ndtr_f32(V x) {
  const V a = abs(x), c = at_most(a, 14.9);  // Φ(−14.9) = 0
  if (x.b->target().vector_bytes == 64) {
    const V tail = erf_parts::ndtr_in_pieces(c);
    return select(x < 0.0, tail, 1.0 - tail);
  }
  const V tail = erf_parts::gaussian(special_tables::ndtr_tail_f32, c, 1.0, 0.5);
  const V inner = mad(erf_parts::middle(x * M_SQRT1_2), 0.5, 0.5);
  return select(a < 0.5, inner, select(x < 0.0, tail, 1.0 - tail));
}

namespace bessel_parts {

constexpr double largest_f32 = std::numeric_limits<float>::max();

/// For a = |x|: exp(−a)·Iₖ(a)·√(a + 1) below 6 (k = 1: over a/(a + 1)) and exp(−a)·Iₖ(a)·√a beyond
/// are nearly straight. `scale` and `root`: a + 1 or a, and its root.
struct Scaled {
  V near;
  erf_parts::Fraction value, scale, root;
};
template <std::size_t small, std::size_t large>
Scaled scaled_i(V a, const double (&low)[small], const double (&high)[large]) {
  const V near = a < 6.0;
  const V u = select(near, mad(a, 5.0 / 3, -2.0), 12.0 - a) / select(near, a + 2.0, a);
  const auto inner = erf_parts::fitted(u, low), outer = erf_parts::fitted(u, high);
  const auto [sum, lost] = two_sum(a, a.like(1.0));
  const V s = select(near, sum, a), s_low = select(near, lost, 0.0), root = sqrt(s);
  return {near,
          {select(near, inner.high, outer.high), select(near, inner.low, outer.low)},
          {s, s_low},
          {root, (left_of(s, root, root) + s_low) * 0.5 / root}};
}

}  // namespace bessel_parts

V bessel_i0e_f32(V x) {
  const V a = abs(x);
  const auto w =
      bessel_parts::scaled_i(at_most(a, bessel_parts::largest_f32), special_tables::i0e_small_f32,
                             special_tables::i0e_large_f32);
  const auto [q, q_low] = erf_parts::quotient(w.value, w.root);
  return select(equal(a, infinity), 0.0, q + q_low);
}

V bessel_i1e_f32(V x) {
  const V a = abs(x), c = at_most(a, bessel_parts::largest_f32);
  const auto w =
      bessel_parts::scaled_i(c, special_tables::i1e_small_f32, special_tables::i1e_large_f32);
  // Below 6 over (a + 1)^1.5, and times a at last.
  const V one = c.like(1.0), factor = select(w.near, w.scale.high, one),
          least = select(w.near, w.scale.low, 0.0);
  const auto [den, den_low] = two_product(factor, w.root.high);
  const auto [q, q_low] =
      erf_parts::quotient(w.value, {den, den_low + (factor * w.root.low + least * w.root.high)});
  const V times = select(w.near, c, one);
  return copysign(select(equal(a, infinity), 0.0, mad(times, q, times * q_low)), x);
}

// A first guess from a third of the exponent, good to 3 %, then Halley steps, each of which triples
// the digits.
V cbrt(V x) {
  const bool wide = x.is_f64();
  IrBuilder& b = *x.b;
  // Away from the ends of the range, where residuals would underflow or sums overflow, by cubes of
  // powers of two.
  const V a = abs(x), tiny = a<(wide ? 0x1p-900 : 0x1p-90), huge = a>(wide ? 0x1p900 : 0x1p90);
  const V n =
      a * select(tiny, wide ? 0x1p240 : 0x1p48, select(huge, wide ? 0x1p-240 : 0x1p-48, 1.0, x));
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
  const V r =
      t * select(tiny, wide ? 0x1p-80 : 0x1p-16, select(huge, wide ? 0x1p80 : 0x1p16, 1.0, x));
  return select((a > 0.0) & (a < infinity), copysign(r, x), x);
}

V rsqrt(V x) { return 1.0 / sqrt(x); }

namespace fmod_parts {

// c - trunc(c/y)·y is exact, as long as nothing is subnormal, even when the quotient had to be
// rounded to 53 bits: what remains is a multiple of both last places and fits. Each round takes 52
// bits off the quotient, so nearly always one does.
V reduced(V c, V y) {
  IrBuilder& b = *c.b;
  return {&b,
          b.while_loop(
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
  return math_value::apply(b, x, [](math_value::V v) {
    return v.is_f64() ? math_core::erfc_f64(v) : math_core::erfc_f32(v);
  });
}
Value cbrt(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::cbrt); }
Value rsqrt(IrBuilder& b, Value x) { return math_value::apply(b, x, math_core::rsqrt); }
Value fmod(IrBuilder& b, Value x, Value y) { return math_value::apply(b, x, y, math_core::fmod); }
Value nextafter(IrBuilder& b, Value x, Value y) {
  if (x.dtype == DType::f32 || x.dtype == DType::f64)
    return math_core::nextafter({&b, x}, {&b, y}).v;
  // Of the 16-bit floats the neighbours are on their own grid: count in their bits.
  const auto bits = [&](Value v) { return b.bitcast(v, DType::i16); };
  const Value one = b.integer(DType::i16, 1, x.simd_lanes);
  const Value away =
      b.bit_xor(b.compare(Compare::lt, x, y), b.compare(Compare::lt, x, b.zero_like(x)));
  const Value stepped =
      b.bitcast(b.select(away, b.add(bits(x), one), b.sub(bits(x), one)), x.dtype);
  const Value least = b.copysign(b.bitcast(one, x.dtype), y);
  const Value moved = b.select(b.compare(Compare::eq, x, b.zero_like(x)), least, stepped);
  const Value nan = b.bit_or(b.is_nan(x), b.is_nan(y));
  return b.select(nan, b.add(x, y), b.select(b.compare(Compare::eq, x, y), y, moved));
}

}  // namespace vt::detail::cpu::math

#endif  // VT_HAS_LLVM_HEADERS
