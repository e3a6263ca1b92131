// Interpreter rules of the element-wise ops with one operand. f16, bf16 and f32 functions are computed in double and rounded once.
#include <bit>
#include <cmath>
#include <limits>

#include "interpreter.hpp"
#include "scalar_math.hpp"

namespace vt::detail::interp_unary {

/// One loop: out[i] = f(in[i]).
template <class In, class Out, class F>
void each(Frame& frame, F f) {
  const In* in = frame.read<In>();
  Out* out = frame.make<Out>();
  for (std::int64_t i = 0, n = frame.out().elements(); i < n; ++i) out[i] = f(in[i]);
}

/// f on the float dtypes, whose elements it takes in their working type (float for the 16-bit ones).
template <class F>
bool on_floats(Frame& frame, F f) {
  switch (frame.in().dtype) {
    case DType::f16: each<Float16, Float16>(frame, [&](float x) { return Float16(f(x)); }); return true;
    case DType::bf16: each<BFloat16, BFloat16>(frame, [&](float x) { return BFloat16(f(x)); }); return true;
    case DType::f32: each<float, float>(frame, f); return true;
    case DType::f64: each<double, double>(frame, f); return true;
    default: return false;
  }
}

template <class F>
bool on_integers(Frame& frame, F f) {
  if (!is_int(frame.in().dtype)) return false;
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) each<T, T>(frame, [&](T x) { return static_cast<T>(f(x)); });
  });
  return true;
}

/// f on the float dtypes, for ops that know no other.
template <class F>
void on_floats_only(Frame& frame, F f) {
  if (!on_floats(frame, f)) refuse_dtype(frame);
}

/// Float tests with a bool result.
template <class F>
void test(Frame& frame, F f) {
  switch (frame.in().dtype) {
    case DType::f16: return each<Float16, bool>(frame, [&](float x) { return f(x); });
    case DType::bf16: return each<BFloat16, bool>(frame, [&](float x) { return f(x); });
    case DType::f32: return each<float, bool>(frame, f);
    case DType::f64: return each<double, bool>(frame, f);
    default: refuse_dtype(frame);
  }
}

void same(Frame& frame) { frame.outputs[0] = frame.inputs[0]; }

void real_function(Frame& frame, double (*f)(double)) {
  switch (frame.in().dtype) {
    case DType::f16: return each<Float16, Float16>(frame, [&](float x) { return from_double<Float16>(f(x)); });
    case DType::bf16: return each<BFloat16, BFloat16>(frame, [&](float x) { return from_double<BFloat16>(f(x)); });
    case DType::f32: return each<float, float>(frame, [&](float x) { return from_double<float>(f(x)); });
    case DType::f64: return each<double, double>(frame, f);
    default: refuse_dtype(frame);
  }
}

void neg(Frame& frame) {
  if (on_floats(frame, [](auto x) { return -x; })) return;
  if (!on_integers(frame, [](auto x) { return scalar_math::sub<decltype(x)>(0, x); })) refuse_dtype(frame);
}

void abs(Frame& frame) {
  if (on_floats(frame, [](auto x) { return std::fabs(x); })) return;
  if (!on_integers(frame, [](auto x) { return x < 0 ? scalar_math::sub<decltype(x)>(0, x) : x; })) refuse_dtype(frame);
}

void sign(Frame& frame) {
  // x itself for NaN and both zeros
  if (on_floats(frame, [](auto x) { return x > 0 ? decltype(x)(1) : x < 0 ? decltype(x)(-1) : x; })) return;
  if (!on_integers(frame, [](auto x) { return (x > 0) - (x < 0); })) refuse_dtype(frame);
}

void floor(Frame& frame) {
  on_floats_only(frame, [](auto x) { return std::floor(x); });
}
void ceil(Frame& frame) {
  on_floats_only(frame, [](auto x) { return std::ceil(x); });
}
void round(Frame& frame) {
  on_floats_only(frame, [](auto x) { return std::nearbyint(x); });  // half to even
}
void trunc(Frame& frame) {
  on_floats_only(frame, [](auto x) { return std::trunc(x); });
}
void sqrt(Frame& frame) {
  on_floats_only(frame, [](auto x) { return std::sqrt(x); });
}

void is_finite(Frame& frame) {
  test(frame, [](auto x) { return std::isfinite(x); });
}
void is_nan(Frame& frame) {
  test(frame, [](auto x) { return std::isnan(x); });
}
void is_inf(Frame& frame) {
  test(frame, [](auto x) { return std::isinf(x); });
}

void integer_pow(Frame& frame) {
  const int exponent = frame.params<IntegerPowParams>().exponent;
  if (on_integers(frame, [&](auto x) { return scalar_math::integer_pow(x, exponent); })) return;
  switch (frame.in().dtype) {
    case DType::f16: return each<Float16, Float16>(frame, [&](float x) { return from_double<Float16>(std::pow(double{x}, exponent)); });
    case DType::bf16: return each<BFloat16, BFloat16>(frame, [&](float x) { return from_double<BFloat16>(std::pow(double{x}, exponent)); });
    case DType::f32: return each<float, float>(frame, [&](float x) { return from_double<float>(std::pow(double{x}, exponent)); });
    case DType::f64: return each<double, double>(frame, [&](double x) { return std::pow(x, exponent); });
    default: refuse_dtype(frame);
  }
}

void not_(Frame& frame) {
  if (is_bool(frame.in().dtype)) return each<bool, bool>(frame, [](bool x) { return !x; });
  if (!on_integers(frame, [](auto x) { return ~x; })) refuse_dtype(frame);
}

void popcount(Frame& frame) {
  if (!on_integers(frame, [](auto x) { return std::popcount(static_cast<std::make_unsigned_t<decltype(x)>>(x)); })) refuse_dtype(frame);
}

void clz(Frame& frame) {
  if (!on_integers(frame, [](auto x) { return std::countl_zero(static_cast<std::make_unsigned_t<decltype(x)>>(x)); })) refuse_dtype(frame);
}

void convert(Frame& frame) {
  const DType from = frame.in().dtype, to = frame.out().dtype;
  if (from == to) return same(frame);
  void* out = frame.make_bytes();
  convert_elements(frame.bytes(), from, out, to, static_cast<std::size_t>(frame.out().elements()));
}

namespace precision {

/// Rounds to `mantissa` bits, half to even; then, if `exponent` is narrower than the format's own, what overflows becomes
/// infinite and what would be subnormal becomes a zero of its sign. NaN stays as it is.
template <class Bits>
Bits reduce(Bits x, int own_mantissa, int own_exponent, int mantissa, int exponent) {
  const Bits one = 1;
  const auto sign = static_cast<Bits>(x & static_cast<Bits>(one << (own_mantissa + own_exponent)));
  auto magnitude = static_cast<Bits>(x ^ sign);
  const auto infinity = static_cast<Bits>(static_cast<Bits>((one << own_exponent) - 1) << own_mantissa);
  if (magnitude > infinity) return x;
  if (mantissa < own_mantissa) {
    const int drop = own_mantissa - mantissa;
    const auto last = static_cast<Bits>((magnitude >> drop) & 1);
    magnitude = static_cast<Bits>(magnitude + static_cast<Bits>(one << (drop - 1)) - one + last);
    magnitude = static_cast<Bits>(magnitude >> drop << drop);
  }
  if (exponent < own_exponent) {
    const int own_bias = (1 << (own_exponent - 1)) - 1, bias = (1 << (exponent - 1)) - 1;
    const int stored = static_cast<int>(magnitude >> own_mantissa);
    if (stored > own_bias + bias) magnitude = infinity;
    else if (stored <= own_bias - bias) magnitude = 0;
  }
  return static_cast<Bits>(sign | magnitude);
}

}  // namespace precision

void reduce_precision(Frame& frame) {
  const auto [exponent, mantissa] = frame.params<PrecisionParams>();
  auto run = [&, e = exponent, m = mantissa](auto tag, int own_mantissa, int own_exponent) {
    using Bits = decltype(tag);
    each<Bits, Bits>(frame, [=](Bits x) { return precision::reduce(x, own_mantissa, own_exponent, m, e); });
  };
  switch (frame.in().dtype) {
    case DType::f16: return run(std::uint16_t{}, 10, 5);
    case DType::bf16: return run(std::uint16_t{}, 7, 8);
    case DType::f32: return run(std::uint32_t{}, 23, 8);
    case DType::f64: return run(std::uint64_t{}, 52, 11);
    default: refuse_dtype(frame);
  }
}

}  // namespace vt::detail::interp_unary
