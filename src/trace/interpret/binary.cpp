// Interpreter rules of the element-wise ops with two operands, and of select. An operand of rank 0
// stands for all elements.
#include <cmath>

#include "../base/scalar_math.hpp"
#include "../numerics/random_bits.hpp"
#include "../numerics/special_math.hpp"
#include "wide_loops.hpp"

namespace vt::detail::interp_binary {

void add(Frame& frame) {
  wide_loops::floats_and_words(frame, [](auto a, auto b) { return a + b; });
}
void sub(Frame& frame) {
  wide_loops::floats_and_words(frame, [](auto a, auto b) { return a - b; });
}
void mul(Frame& frame) {
  wide_loops::floats_and_words(frame, [](auto a, auto b) { return a * b; });
}
void div(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return scalar_math::div(a, b); });
}
void rem(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return scalar_math::rem(a, b); });
}
void max(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return scalar_math::max(a, b); }, true);
}
void min(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return scalar_math::min(a, b); }, true);
}

using RealFunction = double (*)(double, double);
void pow(Frame& frame) {
  if (is_float(frame.in().dtype)) return wide_loops::floats(frame, RealFunction{std::pow});
  wide_loops::integers(frame, [](auto a, auto b) { return scalar_math::integer_pow(a, b); });
}
void atan2(Frame& frame) { wide_loops::floats(frame, RealFunction{std::atan2}); }
void zeta(Frame& frame) { wide_loops::floats(frame, RealFunction{special_math::zeta<double>}); }

/// The next value of a 16-bit float format towards b. Magnitudes are ordered as their bits.
template <class T>
double next_half(double x, double y) {
  if (__builtin_isnan(x)) return x;
  if (__builtin_isnan(y) || x == y) return y;
  T next(static_cast<float>(x));  // exact
  if (x == 0) next.bits = static_cast<std::uint16_t>(__builtin_signbit(y) ? 0x8001u : 1u);
  else next.bits = static_cast<std::uint16_t>((x > y) == (x > 0) ? next.bits - 1 : next.bits + 1);
  return static_cast<double>(static_cast<float>(next));
}

void nextafter(Frame& frame) {
  switch (frame.in().dtype) {
    case DType::f16: return wide_loops::floats(frame, RealFunction{next_half<Float16>});
    case DType::bf16: return wide_loops::floats(frame, RealFunction{next_half<BFloat16>});
    case DType::f32:
      return wide_loops::floats(frame, [](double a, double b) {
        return static_cast<double>(std::nextafter(static_cast<float>(a), static_cast<float>(b)));
      });
    default:
      return wide_loops::floats(frame, [](double a, double b) { return std::nextafter(a, b); });
  }
}

void eq(Frame& frame) {
  wide_loops::floats_and_words(frame, [](auto a, auto b) { return a == b; }, true);
}
void ne(Frame& frame) {
  wide_loops::floats_and_words(frame, [](auto a, auto b) { return a != b; }, true);
}
void lt(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return a < b; }, true);
}
void le(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return a <= b; }, true);
}
void gt(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return a > b; }, true);
}
void ge(Frame& frame) {
  wide_loops::numbers(frame, [](auto a, auto b) { return a >= b; }, true);
}

void and_(Frame& frame) {
  wide_loops::integer_words(frame, [](std::uint64_t a, std::uint64_t b) { return a & b; }, true);
}
void or_(Frame& frame) {
  wide_loops::integer_words(frame, [](std::uint64_t a, std::uint64_t b) { return a | b; }, true);
}
void xor_(Frame& frame) {
  wide_loops::integer_words(frame, [](std::uint64_t a, std::uint64_t b) { return a ^ b; }, true);
}

// In 64 bits: what an amount from the dtype's own number of bits to 63 leaves is cut off, or
// nothing but zeros or signs. A negative amount counts as too large.
void shift_left(Frame& frame) {
  wide_loops::integer_words(frame,
                            [](std::uint64_t a, std::uint64_t b) { return b < 64 ? a << b : 0; });
}
void shift_right_logical(Frame& frame) {
  wide_loops::integer_words(frame,
                            [](std::uint64_t a, std::uint64_t b) { return b < 64 ? a >> b : 0; });
}
void shift_right_arithmetic(Frame& frame) {
  const auto shift = [](std::int64_t a, std::int64_t b) {
    return a >> (static_cast<std::uint64_t>(b) < 64 ? b : 63);
  };
  if (!is_int(frame.in().dtype)) refuse_dtype(frame);
  // of unsigned numbers too
  wide_loops::run<std::int64_t>(frame, wide_loops::word_of(frame.in().dtype, true), shift);
}

void threefry(Frame& frame) { wide_loops::words(frame, &random_bits::threefry); }

void select(Frame& frame) {
  const auto step_of = [&](std::size_t i) { return frame.in(i).shape.empty() ? 0 : 1; };
  with_size(frame.out().dtype, [&](auto tag) {
    using T = decltype(tag);
    const bool* chosen = frame.read<bool>(0);
    const T *a = frame.read<T>(1), *b = frame.read<T>(2);
    const std::int64_t n = frame.out().elements(), step = step_of(0), a_step = step_of(1),
                       b_step = step_of(2);
    T* out = frame.make<T>();
    for (std::int64_t i = 0; i < n; ++i, chosen += step, a += a_step, b += b_step)
      out[i] = *chosen ? *a : *b;
  });
}

}  // namespace vt::detail::interp_binary
