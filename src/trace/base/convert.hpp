// Conversion of numbers among all dtypes: rounds once, saturates float → integer,
// wraps integer → integer; real numbers become complex ones with a zero imaginary part, complex
// ones lose theirs.
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include <vt/tensor.hpp>

namespace vt::detail {

template <class T>
inline constexpr bool is_real_type =
    std::is_floating_point_v<T> || std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;
template <class T>
inline constexpr bool is_half_type = std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>;

/// The neighbour of `x` among the floats whose last bit is odd, if `x` is not a float itself.
/// Rounding that to fewer bits gives what rounding `x` at once would have given.
inline float round_to_odd(double x) {
  const auto nearest = static_cast<float>(x);
  if (__builtin_isnan(x) || static_cast<double>(nearest) == x) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  if (bits & 1) return nearest;
  return std::bit_cast<float>(std::fabs(static_cast<double>(nearest)) > std::fabs(x) ? bits - 1
                                                                                     : bits + 1);
}

/// The same for 64-bit integers, as doubles.
template <std::integral I>
double double_to_odd(I x) {
  const auto magnitude = x < 0 ? -static_cast<std::uint64_t>(x) : static_cast<std::uint64_t>(x);
  const int excess = static_cast<int>(std::bit_width(magnitude)) - 53;
  if (excess <= 0) return static_cast<double>(x);
  const std::uint64_t lost = magnitude & ((std::uint64_t{1} << excess) - 1);
  const auto exact = static_cast<double>(((magnitude >> excess) | (lost != 0)) << excess);
  return x < 0 ? -exact : exact;
}

/// Rounds a double to T, once.
template <class T>
T from_double(double x) {
  if constexpr (is_half_type<T>) return T(round_to_odd(x));
  else return static_cast<T>(x);
}

template <class To, class From>
To convert_value(From x) {
  if constexpr (std::is_same_v<To, From>) return x;
  else if constexpr (std::is_same_v<To, bool>) {
    if constexpr (is_half_type<From>) return static_cast<float>(x) != 0.0f;
    else return x != From{};
  } else if constexpr (is_real_type<To>) {
    if constexpr (is_real_type<From>) {
      if constexpr (is_half_type<From>) return To(static_cast<float>(x));
      else return from_double<To>(static_cast<double>(x));
    } else if constexpr (is_half_type<To> && sizeof(From) == 8)
      return from_double<To>(double_to_odd(x));
    else if constexpr (is_half_type<To>) return from_double<To>(static_cast<double>(x));
    else return static_cast<To>(x);
  } else if constexpr (is_real_type<From>) {
    const auto value = [&] {
      if constexpr (is_half_type<From>) return static_cast<float>(x);
      else return x;
    }();
    using Real = decltype(value);
    using Limits = std::numeric_limits<To>;
    if (__builtin_isnan(value)) return 0;
    // Both bounds are powers of two (or zero), hence exact in every float type.
    const Real above = std::ldexp(Real{1}, Limits::digits);
    if (value >= above) return Limits::max();
    if (value <= (std::is_signed_v<To> ? -above : Real{0})) return Limits::min();
    return static_cast<To>(value);
  } else {
    return static_cast<To>(x);
  }
}

/// The widest dtype of its kind, which holds every number of `dtype`: c128, f64, i64, or u64 (bool
/// too). Reductions and products work in it, so that their code exists four times and not fifteen.
constexpr DType wide_of(DType dtype) {
  return is_complex(dtype)      ? DType::c128
         : is_float(dtype)      ? DType::f64
         : is_signed_int(dtype) ? DType::i64
                                : DType::u64;
}
/// Calls `f` with the C++ type of wide_of(dtype), which is not complex.
template <class F>
decltype(auto) with_wide_type(DType dtype, F&& f) {
  switch (wide_of(dtype)) {
    case DType::f64: return f(double{});
    case DType::i64: return f(std::int64_t{});
    default: return f(std::uint64_t{});
  }
}

/// What an element of 16 bytes is where elements are only moved.
struct Word128 {
  std::uint64_t words[2];
};

/// Converts `n` elements; `from` and `to` may be the same.
void convert_elements(const void* source, DType from, void* target, DType to, std::size_t n);
/// The element at `source`.
Scalar load_scalar(DType dtype, const void* source);
/// Writes the number as an element of its own dtype.
void store_scalar(const Scalar& value, void* target);
/// Writes it `n` times.
void fill_elements(const Scalar& value, void* target, std::size_t n);

}  // namespace vt::detail
