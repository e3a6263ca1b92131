// Owns the notation that the inner functions are written in: IrBuilder Values with operators,
// polynomials and bit tricks.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <utility>

#include "../llvm/ir_builder.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::math_value {

/// A Value with its builder. Operators emit; a double or integer operand becomes a constant of the
/// other's dtype.
struct V {
  IrBuilder* b = nullptr;
  Value v;

  bool is_f64() const { return v.dtype == DType::f64; }
  V like(double x) const { return {b, b->real(v.dtype, x, v.simd_lanes)}; }
  V like_int(std::int64_t x) const { return {b, b->integer(v.dtype, x, v.simd_lanes)}; }
  /// The integer dtype of the same width, and back.
  V bits() const { return {b, b->bitcast(v, is_f64() ? DType::i64 : DType::i32)}; }
  V as_float() const { return {b, b->bitcast(v, size_of(v.dtype) == 8 ? DType::f64 : DType::f32)}; }
  V to(DType d) const { return {b, b->convert(v, d)}; }
};

inline V operator+(V x, V y) { return {x.b, x.b->add(x.v, y.v)}; }
inline V operator-(V x, V y) { return {x.b, x.b->sub(x.v, y.v)}; }
inline V operator*(V x, V y) { return {x.b, x.b->mul(x.v, y.v)}; }
inline V operator/(V x, V y) { return {x.b, x.b->div(x.v, y.v)}; }
inline V operator+(V x, double y) { return x + x.like(y); }
inline V operator-(V x, double y) { return x - x.like(y); }
inline V operator*(V x, double y) { return x * x.like(y); }
inline V operator/(V x, double y) { return x / x.like(y); }
inline V operator+(double x, V y) { return y.like(x) + y; }
inline V operator-(double x, V y) { return y.like(x) - y; }
inline V operator*(double x, V y) { return y.like(x) * y; }
inline V operator/(double x, V y) { return y.like(x) / y; }
inline V operator-(V x) { return {x.b, x.b->neg(x.v)}; }
inline V operator&(V x, V y) { return {x.b, x.b->bit_and(x.v, y.v)}; }
inline V operator|(V x, V y) { return {x.b, x.b->bit_or(x.v, y.v)}; }
inline V operator^(V x, V y) { return {x.b, x.b->bit_xor(x.v, y.v)}; }
inline V operator~(V x) { return {x.b, x.b->bit_not(x.v)}; }
inline V operator<<(V x, int k) { return {x.b, x.b->shift_left(x.v, k)}; }

inline V compare(Compare op, V x, V y) { return {x.b, x.b->compare(op, x.v, y.v)}; }
inline V operator<(V x, V y) { return compare(Compare::lt, x, y); }
inline V operator<=(V x, V y) { return compare(Compare::le, x, y); }
inline V operator>(V x, V y) { return compare(Compare::gt, x, y); }
inline V operator>=(V x, V y) { return compare(Compare::ge, x, y); }
inline V operator<(V x, double y) { return x < x.like(y); }
inline V operator<=(V x, double y) { return x <= x.like(y); }
inline V operator>(V x, double y) { return x > x.like(y); }
inline V operator>=(V x, double y) { return x >= x.like(y); }
inline V equal(V x, V y) { return compare(Compare::eq, x, y); }
inline V equal(V x, double y) { return equal(x, x.like(y)); }

inline V select(V mask, V x, V y) { return {x.b, x.b->select(mask.v, x.v, y.v)}; }
inline V select(V mask, double x, V y) { return select(mask, y.like(x), y); }
inline V select(V mask, double x, double y, V as) { return select(mask, as.like(x), as.like(y)); }
inline V select(V mask, V x, double y) { return select(mask, x, x.like(y)); }
inline V abs(V x) { return {x.b, x.b->abs(x.v)}; }
inline V sqrt(V x) { return {x.b, x.b->sqrt(x.v)}; }
inline V trunc(V x) { return {x.b, x.b->trunc(x.v)}; }
inline V is_nan(V x) { return {x.b, x.b->is_nan(x.v)}; }
inline V copysign(V magnitude, V sign) { return {sign.b, sign.b->copysign(magnitude.v, sign.v)}; }
inline V shift_right_signed(V x, int k) { return {x.b, x.b->shift_right_arithmetic(x.v, k)}; }
inline V sign_bit(V x) { return x.bits() < x.bits().like_int(0); }

/// a·b + c, one rounding where the CPU has it. `exact_mad` always rounds once.
inline V mad(V a, V b, V c) { return {a.b, a.b->mul_add(a.v, b.v, c.v)}; }
inline V mad(V a, double b, V c) { return mad(a, a.like(b), c); }
inline V mad(V a, V b, double c) { return mad(a, b, a.like(c)); }
inline V mad(V a, double b, double c) { return mad(a, a.like(b), a.like(c)); }
inline V exact_mad(V a, V b, V c) { return {a.b, a.b->fma(a.v, b.v, c.v)}; }

/// The smaller (larger) of x and a constant; NaN stays NaN.
inline V at_most(V x, double limit) { return select(x.like(limit) < x, x.like(limit), x); }
inline V at_least(V x, double limit) { return select(x.like(limit) > x, x.like(limit), x); }

/// c[0] + c[1]·x + … by Horner's rule: in a loop over vectors the iterations overlap, so its
/// latency does not show.
inline V polynomial(V x, std::span<const double> c) {
  V r = x.like(c.back());
  for (std::size_t k = c.size() - 1; k-- > 0;) r = mad(r, x, c[k]);
  return r;
}

/// a·b = first + second exactly.
inline std::pair<V, V> two_product(V a, V b) {
  const V p = a * b;
  if (a.b->target().fma) return {p, exact_mad(a, b, -p)};
  // Dekker: halves of the significand, whose products are exact.
  const double splitter = a.is_f64() ? 134217729.0 : 4097.0;
  const auto split = [&](V x) {
    const V t = x * splitter, high = t - (t - x);
    return std::pair{high, x - high};
  };
  const auto [ah, al] = split(a);
  const auto [bh, bl] = split(b);
  return {p, al * bl - (((p - ah * bh) - al * bh) - ah * bl)};
}

/// x − a·b, exactly, where a·b is x but for rounding: what a division or a square root leaves.
inline V left_of(V x, V a, V b) {
  if (a.b->target().fma) return exact_mad(-a, b, x);
  const auto [product, low] = two_product(a, b);
  return (x - product) - low;
}

/// a + b = first + second exactly, if |a| ≥ |b| or a = 0.
inline std::pair<V, V> fast_two_sum(V a, V b) {
  const V s = a + b;
  return {s, b - (s - a)};
}

/// a + b = first + second exactly.
inline std::pair<V, V> two_sum(V a, V b) {
  const V s = a + b, t = s - a;
  return {s, (a - (s - t)) + (b - t)};
}

/// 2^k for integers k that keep it normal, as a float.
inline V power_of_two(V k) {
  const bool wide = size_of(k.v.dtype) == 8;
  return ((k + k.like_int(wide ? 1023 : 127)) << (wide ? 52 : 23)).as_float();
}

/// p·2^k, also where 2^k itself would overflow or be subnormal: in two steps, of which only the
/// last can round.
inline V scale(V p, V k) {
  const V half = shift_right_signed(k, 1);
  return (p * power_of_two(half)) * power_of_two(k - half);
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double quiet_nan = std::numeric_limits<double>::quiet_NaN();

/// Runs `f` on f32 or f64; the 16-bit floats go through f32.
template <class F>
Value apply(IrBuilder& b, Value x, F&& f) {
  const bool half = x.dtype == DType::f16 || x.dtype == DType::bf16;
  const Value wide = half ? b.convert(x, DType::f32) : x;
  return b.convert(f(V{&b, wide}).v, x.dtype);
}

template <class F>
Value apply(IrBuilder& b, Value x, Value y, F&& f) {
  const bool half = x.dtype == DType::f16 || x.dtype == DType::bf16;
  const auto wide = [&](Value v) { return half ? b.convert(v, DType::f32) : v; };
  return b.convert(f(V{&b, wide(x)}, V{&b, wide(y)}).v, x.dtype);
}

/// f32 by way of f64: for functions whose f32 algorithm would not be accurate enough, and are not
/// hot.
template <class F>
V through_f64(V x, F&& f) {
  return x.is_f64() ? f(x) : f(x.to(DType::f64)).to(DType::f32);
}

}  // namespace vt::detail::cpu::math_value

namespace vt::detail::cpu::math_core {

using math_value::V;

// Shared between the files of inner functions; each is defined in the file named.

/// e^(x + low) = p · 2^k with p in [0.7, 1.42]; x must be within the range where k is a small
/// integer (math/exp.cpp).
struct Exponential {
  V p, k;
};
/// `careful`: half an ulp better for five operations more.
Exponential exponential(V x, const V* low = nullptr, bool careful = false);
V log(V x);  // math/log.cpp
/// f32 kernels of functions whose f64 ones are in src/trace/numerics/special_math.hpp
/// (math/special.cpp).
V ndtr_f32(V x);
V bessel_i0e_f32(V x);
V bessel_i1e_f32(V x);
/// sin(π·r) and cot(π·r) for |r| ≤ ½, r ≠ 0 in the latter (math/trig.cpp).
V sin_pi(V r);
V cot_pi(V r);

}  // namespace vt::detail::cpu::math_core

#endif  // VT_HAS_LLVM_HEADERS
