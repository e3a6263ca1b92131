// Interpreter rules of the element-wise ops with one operand. Floats are computed in double and
// rounded once.
#include <bit>
#include <cmath>

#include "../base/scalar_math.hpp"
#include "wide_loops.hpp"

namespace vt::detail::interp_unary {

void same(Frame& frame) { frame.outputs[0] = frame.inputs[0]; }

void real_function(Frame& frame, double (*f)(double)) { wide_loops::floats(frame, f); }

void neg(Frame& frame) {
  wide_loops::floats_and_words(frame, [](auto x) { return -x; });
}
void abs(Frame& frame) {
  const DType dtype = frame.in().dtype;
  if (is_unsigned(dtype)) return same(frame);
  if (is_float(dtype)) return wide_loops::floats(frame, [](double x) { return std::fabs(x); });
  wide_loops::integers(frame,
                       [](auto x) { return x < 0 ? scalar_math::sub<decltype(x)>(0, x) : x; });
}
void sign(Frame& frame) {
  // x itself for NaN and both zeros
  wide_loops::numbers(frame, [](auto x) {
    return x > 0 ? decltype(x)(1) : x < 0 ? decltype(x)(-1) : x;
  });
}

void floor(Frame& frame) {
  wide_loops::floats(frame, [](double x) { return std::floor(x); });
}
void ceil(Frame& frame) {
  wide_loops::floats(frame, [](double x) { return std::ceil(x); });
}
void round(Frame& frame) {
  wide_loops::floats(frame, [](double x) { return std::nearbyint(x); });  // half to even
}
void trunc(Frame& frame) {
  wide_loops::floats(frame, [](double x) { return std::trunc(x); });
}
void sqrt(Frame& frame) {
  wide_loops::floats(frame, [](double x) { return std::sqrt(x); });
}

void is_finite(Frame& frame) {
  wide_loops::floats(frame, [](double x) -> bool { return __builtin_isfinite(x); });
}
void is_nan(Frame& frame) {
  wide_loops::floats(frame, [](double x) -> bool { return __builtin_isnan(x); });
}
void is_inf(Frame& frame) {
  wide_loops::floats(frame, [](double x) -> bool { return __builtin_isinf(x); });
}

void integer_pow(Frame& frame) {
  const int exponent = frame.params<IntegerPowParams>().exponent;
  if (is_float(frame.in().dtype))
    return wide_loops::floats(frame, [exponent](double x) { return std::pow(x, exponent); });
  wide_loops::integers(frame, [exponent](auto x) { return scalar_math::integer_pow(x, exponent); });
}

void not_(Frame& frame) {
  if (is_bool(frame.in().dtype))
    return wide_loops::words(frame, [](std::uint64_t x) { return x ^ 1; });
  wide_loops::integer_words(frame, [](std::uint64_t x) { return ~x; });
}
void popcount(Frame& frame) {
  wide_loops::integer_words(
      frame, [](std::uint64_t x) { return static_cast<std::uint64_t>(std::popcount(x)); });
}
void clz(Frame& frame) {
  const auto in_front = 64 - 8 * static_cast<std::uint64_t>(size_of(frame.in().dtype));
  wide_loops::integer_words(frame, [in_front](std::uint64_t x) {
    return static_cast<std::uint64_t>(std::countl_zero(x)) - in_front;
  });
}

void convert(Frame& frame) {
  const DType from = frame.in().dtype, to = frame.out().dtype;
  if (from == to) return same(frame);
  void* out = frame.make_bytes();
  convert_elements(frame.bytes(), from, out, to, frame.out().elements());
}

void reduce_precision(Frame& frame) {
  const auto [exponent, mantissa] = frame.params<PrecisionParams>();
  const DType dtype = frame.in().dtype;
  if (!is_float(dtype)) refuse_dtype(frame);
  const int own_mantissa = dtype == DType::f16    ? 10
                           : dtype == DType::bf16 ? 7
                           : dtype == DType::f32  ? 23
                                                  : 52;
  const int own_exponent = 8 * static_cast<int>(size_of(dtype)) - 1 - own_mantissa;
  // Rounds to `mantissa` bits, half to even; then, if `exponent` is narrower than the format's own,
  // what overflows becomes infinite and what would be subnormal becomes a zero of its sign. NaN
  // stays as it is.
  wide_loops::words(frame, [=, exponent = exponent, mantissa = mantissa](std::uint64_t x) {
    const std::uint64_t one = 1, sign = x & one << (own_mantissa + own_exponent),
                        infinity = ((one << own_exponent) - 1) << own_mantissa;
    std::uint64_t magnitude = x ^ sign;
    if (magnitude > infinity) return x;
    if (mantissa < own_mantissa) {
      const int drop = own_mantissa - mantissa;
      magnitude += (one << (drop - 1)) - one + ((magnitude >> drop) & 1);
      magnitude = magnitude >> drop << drop;
    }
    if (exponent < own_exponent) {
      const int own_bias = (1 << (own_exponent - 1)) - 1, bias = (1 << (exponent - 1)) - 1;
      const int stored = static_cast<int>(magnitude >> own_mantissa);
      if (stored > own_bias + bias) magnitude = infinity;
      else if (stored <= own_bias - bias) magnitude = 0;
    }
    return sign | magnitude;
  });
}

}  // namespace vt::detail::interp_unary
