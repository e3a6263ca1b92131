// Interpreter rules of the element-wise ops with two operands, and of select. An operand of rank 0 stands for all elements.
#include <bit>
#include <cmath>

#include "interpreter.hpp"
#include "scalar_math.hpp"
#include "special_math.hpp"

namespace vt::detail::interp_binary {

using scalar_math::Working;

/// How far to step in operand i per element of the result: not at all for a scalar.
std::int64_t step_of(const Frame& frame, std::size_t i) { return frame.in(i).shape.empty() ? 0 : 1; }

/// out[i] = f(a[i], b[i]), with both in T's working type; `first`: the operand that is a.
template <class T, class Out, class F>
void each(Frame& frame, F f, std::size_t first = 0) {
  const std::size_t second = 1 - first;
  const T *a = frame.read<T>(first), *b = frame.read<T>(second);
  const std::int64_t n = frame.out().elements(), a_step = step_of(frame, first), b_step = step_of(frame, second);
  Out* out = frame.make<Out>();
  for (std::int64_t i = 0; i < n; ++i, a += a_step, b += b_step)
    out[i] = static_cast<Out>(f(static_cast<Working<T>>(*a), static_cast<Working<T>>(*b)));
}

/// f for the floats, and for integers as unsigned words: right for what two's complement does alike for both signs.
template <class F>
void on_floats_and_words(Frame& frame, F f) {
  switch (frame.in().dtype) {
    case DType::bool_: refuse_dtype(frame);
    case DType::f16: return each<Float16, Float16>(frame, f);
    case DType::bf16: return each<BFloat16, BFloat16>(frame, f);
    case DType::f32: return each<float, float>(frame, f);
    case DType::f64: return each<double, double>(frame, f);
    default: with_word(frame.in().dtype, [&](auto word) { each<decltype(word), decltype(word)>(frame, f); });
  }
}

/// f for integers (and bool where `bools`) as unsigned words.
template <class F>
void on_words(Frame& frame, bool bools, F f) {
  if (is_float(frame.in().dtype) || (is_bool(frame.in().dtype) && !bools)) refuse_dtype(frame);
  with_word(frame.in().dtype, [&](auto word) { each<decltype(word), decltype(word)>(frame, f); });
}

/// f for the integers and the floats.
template <class F>
void on_numbers(Frame& frame, F f) {
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (!std::is_same_v<T, bool>) each<T, T>(frame, f);
    else refuse_dtype(frame);
  });
}

/// f for every dtype.
template <class F>
void on_all(Frame& frame, F f) {
  with_type(frame.in().dtype, [&](auto tag) { each<decltype(tag), decltype(tag)>(frame, f); });
}

/// The same with a bool result; `swapped`: of the second operand and the first.
template <class F>
void compare(Frame& frame, bool swapped, F f) {
  with_type(frame.in().dtype, [&](auto tag) { each<decltype(tag), bool>(frame, f, swapped ? 1 : 0); });
}

/// f for the integers.
template <class F>
void on_integers(Frame& frame, F f) {
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) each<T, T>(frame, f);
    else refuse_dtype(frame);
  });
}

/// A function of doubles, rounded once.
void real(Frame& frame, double (*f)(double, double)) {
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (is_real_type<T>) each<T, T>(frame, [f](auto a, auto b) { return from_double<T>(f(a, b)); });
    else refuse_dtype(frame);
  });
}

void add(Frame& frame) {
  on_floats_and_words(frame, [](auto a, auto b) { return scalar_math::add(a, b); });
}
void sub(Frame& frame) {
  on_floats_and_words(frame, [](auto a, auto b) { return scalar_math::sub(a, b); });
}
void mul(Frame& frame) {
  on_floats_and_words(frame, [](auto a, auto b) { return scalar_math::mul(a, b); });
}
void div(Frame& frame) {
  on_numbers(frame, [](auto a, auto b) { return scalar_math::div(a, b); });
}
void rem(Frame& frame) {
  on_numbers(frame, [](auto a, auto b) { return scalar_math::rem(a, b); });
}
void max(Frame& frame) {
  on_all(frame, [](auto a, auto b) { return scalar_math::max(a, b); });
}
void min(Frame& frame) {
  on_all(frame, [](auto a, auto b) { return scalar_math::min(a, b); });
}

void pow(Frame& frame) {
  if (is_float(frame.in().dtype)) return real(frame, std::pow);
  on_integers(frame, [](auto a, auto b) { return scalar_math::integer_pow(a, b); });
}
void atan2(Frame& frame) { real(frame, std::atan2); }
void zeta(Frame& frame) { real(frame, special_math::zeta<double>); }

/// The next value of a 16-bit float format towards b. Magnitudes are ordered as their bits.
template <class T>
T next_half(T a, T b) {
  const float x = a, y = b;
  if (std::isnan(x)) return a;
  if (std::isnan(y) || x == y) return b;
  T result;
  if (x == 0) result.bits = static_cast<std::uint16_t>((b.bits & 0x8000u) | 1u);
  else result.bits = static_cast<std::uint16_t>((x > y) == (x > 0) ? a.bits - 1 : a.bits + 1);
  return result;
}

void nextafter(Frame& frame) {
  with_type(frame.in().dtype, [&](auto tag) {
    using T = decltype(tag);
    if constexpr (is_half_type<T>) each<T, T>(frame, [](float a, float b) { return next_half(T(a), T(b)); });  // both exact
    else if constexpr (is_real_type<T>) each<T, T>(frame, [](T a, T b) { return std::nextafter(a, b); });
    else refuse_dtype(frame);
  });
}

void eq(Frame& frame) {
  compare(frame, false, [](auto a, auto b) { return a == b; });
}
void ne(Frame& frame) {
  compare(frame, false, [](auto a, auto b) { return a != b; });
}
void lt(Frame& frame) {
  compare(frame, false, [](auto a, auto b) { return a < b; });
}
void le(Frame& frame) {
  compare(frame, false, [](auto a, auto b) { return a <= b; });
}
void gt(Frame& frame) {
  compare(frame, true, [](auto a, auto b) { return a < b; });
}
void ge(Frame& frame) {
  compare(frame, true, [](auto a, auto b) { return a <= b; });
}

void and_(Frame& frame) {
  on_words(frame, true, [](auto a, auto b) { return a & b; });
}
void or_(Frame& frame) {
  on_words(frame, true, [](auto a, auto b) { return a | b; });
}
void xor_(Frame& frame) {
  on_words(frame, true, [](auto a, auto b) { return a ^ b; });
}

/// As an unsigned number a negative amount counts as too large.
template <class Word>
bool too_far(Word amount) {
  return amount >= sizeof(Word) * 8;
}

void shift_left(Frame& frame) {
  on_words(frame, false, [](auto a, auto b) {
    using Word = decltype(a);
    return too_far(b) ? Word{0} : static_cast<Word>(scalar_math::Wrapping<Word>(a) << b);
  });
}
void shift_right_logical(Frame& frame) {
  on_words(frame, false, [](auto a, auto b) { return too_far(b) ? decltype(a){0} : static_cast<decltype(a)>(a >> b); });
}
void shift_right_arithmetic(Frame& frame) {
  on_words(frame, false, [](auto a, auto b) {
    using Word = decltype(a);
    const auto value = static_cast<std::make_signed_t<Word>>(a);
    return static_cast<Word>(too_far(b) ? (value < 0 ? -1 : 0) : value >> b);
  });
}

void threefry(Frame& frame) { each<std::uint64_t, std::uint64_t>(frame, scalar_math::threefry); }

void select(Frame& frame) {
  with_size(frame.out().dtype, [&](auto tag) {
    using T = decltype(tag);
    const bool* chosen = frame.read<bool>(0);
    const T *a = frame.read<T>(1), *b = frame.read<T>(2);
    const std::int64_t n = frame.out().elements(), step = step_of(frame, 0), a_step = step_of(frame, 1), b_step = step_of(frame, 2);
    T* out = frame.make<T>();
    for (std::int64_t i = 0; i < n; ++i, chosen += step, a += a_step, b += b_step) out[i] = *chosen ? *a : *b;
  });
}

}  // namespace vt::detail::interp_binary
