// Element types: the DType enum, its names and properties, and how 16-bit floats and complex
// numbers are stored.
#pragma once

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <type_traits>

namespace vt {

/// Element type of a Tensor. `bool_` is one byte holding 0 or 1; c64 and c128 are two floats, real
/// part first.
enum class DType : std::uint8_t {
  bool_,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f16,
  bf16,
  f32,
  f64,
  c64,
  c128
};

/// The same as names of vt.
inline constexpr DType bool_ = DType::bool_, i8 = DType::i8, u8 = DType::u8, i16 = DType::i16,
                       u16 = DType::u16, i32 = DType::i32, u32 = DType::u32, i64 = DType::i64,
                       u64 = DType::u64, f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32,
                       f64 = DType::f64, c64 = DType::c64, c128 = DType::c128;
/// How many dtypes there are, and how many of them are not complex (the first ones).
inline constexpr int dtype_count = 15, real_dtype_count = 13;  // complex ones are the last

/// The float dtype of what says none: of creators, draws, and of integers in functions that give
/// floats. f32, or what the innermost DefaultDType of this thread says (vt/execution.hpp).
[[nodiscard]] DType default_dtype();

/// "f32", "bool", … as printed in messages and Graphs.
[[nodiscard]] constexpr const char* name_of(DType d) {
  constexpr const char* names[dtype_count] = {"bool", "i8",  "u8",  "i16", "u16",
                                              "i32",  "u32", "i64", "u64", "f16",
                                              "bf16", "f32", "f64", "c64", "c128"};
  return names[static_cast<int>(d)];
}

/// Bytes per element.
[[nodiscard]] constexpr std::size_t size_of(DType d) {
  constexpr std::uint8_t sizes[dtype_count] = {1, 1, 1, 2, 2, 4, 4, 8, 8, 2, 2, 4, 8, 8, 16};
  return sizes[static_cast<int>(d)];
}

/// A real float dtype.
[[nodiscard]] constexpr bool is_float(DType d) { return d >= DType::f16 && d <= DType::f64; }
/// c64 or c128.
[[nodiscard]] constexpr bool is_complex(DType d) { return d >= DType::c64; }
/// A float or complex dtype: what has derivatives.
[[nodiscard]] constexpr bool is_inexact(DType d) { return d >= DType::f16; }
/// The dtype of the parts of a complex one; any other itself.
[[nodiscard]] constexpr DType real_dtype(DType d) {
  return d == DType::c64 ? DType::f32 : d == DType::c128 ? DType::f64 : d;
}
/// The complex dtype that a float one goes with: c128 for f64, c64 for narrower; else itself.
[[nodiscard]] constexpr DType complex_dtype(DType d) {
  return d == DType::f64 ? DType::c128 : is_float(d) ? DType::c64 : d;
}
/// bool_; any integer; an unsigned, a signed one.
[[nodiscard]] constexpr bool is_bool(DType d) { return d == DType::bool_; }
[[nodiscard]] constexpr bool is_int(DType d) { return d > DType::bool_ && d < DType::f16; }
[[nodiscard]] constexpr bool is_unsigned(DType d) {
  return d == u8 || d == u16 || d == u32 || d == u64;
}
[[nodiscard]] constexpr bool is_signed_int(DType d) {
  return d == i8 || d == i16 || d == i32 || d == i64;
}

namespace detail {
// Round to nearest even; the discarded bits decide. Works for any target with `mant` stored
// mantissa bits.
constexpr std::uint16_t f16_bits_from_float(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (x >> 16) & 0x8000u, mag = x & 0x7fffffffu;
  // NaN stays quiet NaN
  if (mag > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u | ((mag >> 13) & 0x3ffu));
  // rounds to infinity
  if (mag >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);
  // ≤ half the least subnormal
  if (mag < 0x33000000u || mag == 0x33000000u) return static_cast<std::uint16_t>(sign);
  if (mag < 0x38800000u) {  // subnormal result
    const int shift = 126 - static_cast<int>(mag >> 23);
    const std::uint32_t m = (mag & 0x7fffffu) | 0x800000u;
    const std::uint32_t kept = m >> shift, rest = m & ((1u << shift) - 1u),
                        half = 1u << (shift - 1);
    return static_cast<std::uint16_t>(sign |
                                      (kept + (rest > half || (rest == half && (kept & 1u)))));
  }
  const std::uint32_t rounded = mag + 0xfffu + ((mag >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

constexpr float float_from_f16_bits(std::uint16_t h) {
  const std::uint32_t sign = (h & 0x8000u) << 16;
  std::uint32_t exponent = (h >> 10) & 0x1fu, mantissa = h & 0x3ffu;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent == 0) {
    const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | ((exponent + 112u) << 23) | (mantissa << 13));
}

constexpr std::uint16_t bf16_bits_from_float(float value) {
  const std::uint32_t x = std::bit_cast<std::uint32_t>(value);
  if ((x & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((x >> 16) | 0x40u);
  return static_cast<std::uint16_t>((x + 0x7fffu + ((x >> 16) & 1u)) >> 16);
}
}  // namespace detail

/// IEEE binary16 as stored; arithmetic goes through float.
struct Float16 {
  std::uint16_t bits = 0;
  constexpr Float16() = default;
  constexpr explicit Float16(float x) : bits(detail::f16_bits_from_float(x)) {}
  constexpr operator float() const { return detail::float_from_f16_bits(bits); }
};

/// bfloat16 as stored (the upper half of a binary32); arithmetic goes through float.
struct BFloat16 {
  std::uint16_t bits = 0;
  constexpr BFloat16() = default;
  constexpr explicit BFloat16(float x) : bits(detail::bf16_bits_from_float(x)) {}
  constexpr operator float() const {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }
};

namespace detail {
/// std::complex<float> and std::complex<double>, known by what they offer, so that <complex> need
/// not be included here.
template <class T>
concept ComplexElement =
    requires(const T& z) {
      typename T::value_type;
      { z.real() } -> std::same_as<typename T::value_type>;
      { z.imag() } -> std::same_as<typename T::value_type>;
    } &&
    (std::same_as<typename T::value_type, float> || std::same_as<typename T::value_type, double>) &&
    sizeof(T) == 2 * sizeof(typename T::value_type);
/// The types of characters that are no small integers.
template <class T>
concept Character = std::same_as<T, wchar_t> || std::same_as<T, char8_t> ||
                    std::same_as<T, char16_t> || std::same_as<T, char32_t>;
}  // namespace detail

/// C++ type → DType. `long long` and `long` of 8 bytes are both i64.
template <class T>
[[nodiscard]] constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, bool>) return DType::bool_;
  else if constexpr (std::is_same_v<T, Float16>) return DType::f16;
  else if constexpr (std::is_same_v<T, BFloat16>) return DType::bf16;
  else if constexpr (std::is_same_v<T, float>) return DType::f32;
  else if constexpr (std::is_same_v<T, double>) return DType::f64;
  else if constexpr (detail::ComplexElement<T>) return sizeof(T) == 8 ? DType::c64 : DType::c128;
  else {
    static_assert(std::is_integral_v<T>, "vt: no dtype for this C++ type");
    constexpr bool is_signed = std::is_signed_v<T>;
    if constexpr (sizeof(T) == 1) return is_signed ? DType::i8 : DType::u8;
    else if constexpr (sizeof(T) == 2) return is_signed ? DType::i16 : DType::u16;
    else if constexpr (sizeof(T) == 4) return is_signed ? DType::i32 : DType::u32;
    else return is_signed ? DType::i64 : DType::u64;
  }
}

namespace detail {
/// Calls `f(T{})` with the C++ storage type of `d`, which is not complex; bool_ is `bool`.
template <class F>
decltype(auto) with_type(DType d, F&& f) {
  switch (d) {
    case DType::bool_: return f(bool{});
    case DType::i8: return f(std::int8_t{});
    case DType::u8: return f(std::uint8_t{});
    case DType::i16: return f(std::int16_t{});
    case DType::u16: return f(std::uint16_t{});
    case DType::i32: return f(std::int32_t{});
    case DType::u32: return f(std::uint32_t{});
    case DType::i64: return f(std::int64_t{});
    case DType::u64: return f(std::uint64_t{});
    case DType::f16: return f(Float16{});
    case DType::bf16: return f(BFloat16{});
    case DType::f32: return f(float{});
    default: return f(double{});
  }
}
}  // namespace detail

}  // namespace vt
