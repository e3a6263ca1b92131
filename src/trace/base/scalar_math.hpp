// Arithmetic of two numbers of one type as the ops define it: wrap-around integers, max and min
// that keep NaN. bool has max and min only.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "convert.hpp"

namespace vt::detail::scalar_math {

/// An unsigned type that neither promotes to int nor loses bits of T.
template <class T>
using Wrapping = std::common_type_t<std::make_unsigned_t<T>, unsigned>;

template <class T>
inline constexpr bool is_real_working = std::is_floating_point_v<T>;

template <class T>
T add(T a, T b) {
  if constexpr (is_real_working<T>) return a + b;
  else return static_cast<T>(Wrapping<T>(a) + Wrapping<T>(b));
}
template <class T>
T sub(T a, T b) {
  if constexpr (is_real_working<T>) return a - b;
  else return static_cast<T>(Wrapping<T>(a) - Wrapping<T>(b));
}
template <class T>
T mul(T a, T b) {
  if constexpr (is_real_working<T>) return a * b;
  else return static_cast<T>(Wrapping<T>(a) * Wrapping<T>(b));
}
/// Truncates; 0 for a zero divisor; the most negative number over −1 wraps to itself.
template <class T>
T div(T a, T b) {
  if constexpr (is_real_working<T>) return a / b;
  else if (b == 0) return 0;
  else if constexpr (std::is_signed_v<T>) return b == -1 ? sub<T>(0, a) : static_cast<T>(a / b);
  else return static_cast<T>(a / b);
}
/// The sign of a, as C's fmod and %; 0 for a zero integer divisor.
template <class T>
T rem(T a, T b) {
  if constexpr (is_real_working<T>) return std::fmod(a, b);
  else if (b == 0) return 0;
  else if constexpr (std::is_signed_v<T>) return b == -1 ? T{0} : static_cast<T>(a % b);
  else return static_cast<T>(a % b);
}
/// Integer powers wrap; a negative exponent gives 0, but 1 for base 1 and ±1 for base −1.
template <class T, class E>
T integer_pow(T base, E exponent) {
  if constexpr (std::is_signed_v<E>) {
    if (exponent < 0) {
      if (base == 1) return 1;
      if constexpr (std::is_signed_v<T>)
        if (base == -1) return exponent % 2 == 0 ? T{1} : T{-1};
      return 0;
    }
  }
  T result = 1;
  for (auto e = static_cast<std::uint64_t>(exponent); e != 0; e >>= 1) {
    if (e & 1) result = mul(result, base);
    base = mul(base, base);
  }
  return result;
}
/// NaN if either is NaN; of two equal numbers the first.
template <class T>
T max(T a, T b) {
  if constexpr (is_real_working<T>)
    if (__builtin_isnan(a) || __builtin_isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return a < b ? b : a;
}
template <class T>
T min(T a, T b) {
  if constexpr (is_real_working<T>)
    if (__builtin_isnan(a) || __builtin_isnan(b)) return std::numeric_limits<T>::quiet_NaN();
  return b < a ? b : a;
}

}  // namespace vt::detail::scalar_math
