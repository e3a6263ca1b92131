// Conversion of runs of elements and of Scalars, by the rules of convert.hpp.
#include "convert.hpp"

#include <algorithm>
#include <cstring>

namespace vt::detail {
namespace convert_runs {

template <class From, class To>
void run(const void* source, void* target, std::size_t n) {
  const auto* in = static_cast<const From*>(source);
  auto* out = static_cast<To*>(target);
  for (std::size_t i = 0; i < n; ++i) out[i] = convert_value<To>(in[i]);
}

/// To wide_of(from): exact.
void widen(const void* source, DType from, void* target, std::size_t n) {
  with_type(from, [&](auto tag) {
    using From = decltype(tag);
    if constexpr (is_real_type<From>) run<From, double>(source, target, n);
    else if constexpr (std::is_signed_v<From>) run<From, std::int64_t>(source, target, n);
    else run<From, std::uint64_t>(source, target, n);
  });
}

/// From a wide dtype: the one rounding.
void narrow(const void* source, DType wide, void* target, DType to, std::size_t n) {
  with_wide_type(wide, [&](auto from) {
    with_type(to, [&](auto tag) { run<decltype(from), decltype(tag)>(source, target, n); });
  });
}

/// From or to complex numbers, by way of their parts; nonzero → true.
void with_complex(const void* source, DType from, void* target, DType to, std::size_t n) {
  if (is_complex(from) && is_complex(to))
    return convert_elements(source, real_dtype(from), target, real_dtype(to), 2 * n);
  constexpr std::size_t piece = 256;
  double parts[2 * piece], reals[piece];
  constexpr double zero = 0;
  const bool is_source = is_complex(from);
  const DType part = real_dtype(is_source ? from : to);
  for (std::size_t done = 0; done < n; done += piece) {
    const std::size_t count = std::min(piece, n - done);
    const auto* in = static_cast<const char*>(source) + done * size_of(from);
    auto* out = static_cast<char*>(target) + done * size_of(to);
    if (is_source) {
      convert_elements(in, part, parts, DType::f64, 2 * count);
      for (std::size_t i = 0; i < count; ++i)
        reals[i] = is_bool(to) ? static_cast<double>(parts[2 * i] != 0 || parts[2 * i + 1] != 0)
                               : parts[2 * i];
      convert_elements(reals, DType::f64, out, to, count);
    } else {
      convert_elements(in, from, reals, part, count);  // in the dtype of the parts: one rounding
      const std::size_t size = size_of(part);
      for (std::size_t i = 0; i < count; ++i)
        std::memcpy(out + 2 * i * size, reinterpret_cast<const char*>(reals) + i * size, size);
      for (std::size_t i = 0; i < count; ++i) std::memcpy(out + (2 * i + 1) * size, &zero, size);
    }
  }
}

}  // namespace convert_runs

void convert_elements(const void* source, DType from, void* target, DType to, std::size_t n) {
  const DType wide = wide_of(from);
  if (from == to) {
    if (n) std::memcpy(target, source, n * size_of(from));
    return;
  }
  if (is_complex(from) || is_complex(to))
    return convert_runs::with_complex(source, from, target, to, n);
  if (from == wide) return convert_runs::narrow(source, from, target, to, n);
  if (to == wide) return convert_runs::widen(source, from, target, n);
  // By way of the wide dtype, in pieces that stay in the nearest cache.
  constexpr std::size_t piece = 512;
  std::uint64_t between[piece];
  for (std::size_t done = 0; done < n; done += piece) {
    const std::size_t count = std::min(piece, n - done);
    convert_runs::widen(static_cast<const char*>(source) + done * size_of(from), from, between,
                        count);
    convert_runs::narrow(between, wide, static_cast<char*>(target) + done * size_of(to), to, count);
  }
}

Scalar load_scalar(DType dtype, const void* source) {
  Scalar value;
  if (is_complex(dtype)) {
    double parts[2];
    convert_elements(source, dtype, parts, DType::c128, 1);
    value.real = parts[0];
    value.imaginary = parts[1];
  } else {
    convert_elements(source, dtype, &value.natural, wide_of(dtype), 1);
  }
  value.dtype = dtype;
  return value;
}

void store_scalar(const Scalar& value, void* target) {
  if (!is_complex(value.dtype))
    return convert_elements(&value.natural, wide_of(value.dtype), target, value.dtype, 1);
  const double parts[2] = {value.real, value.imaginary};
  convert_elements(parts, DType::c128, target, value.dtype, 1);
}

void fill_elements(const Scalar& value, void* target, std::size_t n) {
  std::uint64_t bits[2] = {};
  store_scalar(value, bits);
  auto fill = [&](auto element) {
    std::memcpy(&element, bits, sizeof element);
    std::fill_n(static_cast<decltype(element)*>(target), n, element);
  };
  switch (size_of(value.dtype)) {
    case 1: return fill(std::uint8_t{});
    case 2: return fill(std::uint16_t{});
    case 4: return fill(std::uint32_t{});
    case 8: return fill(std::uint64_t{});
    default: return fill(Word128{});
  }
}

Scalar Scalar::converted(DType to) const {
  unsigned char before[16], after[16];
  store_scalar(*this, before);
  convert_elements(before, dtype, after, to, 1);
  return load_scalar(to, after);
}

}  // namespace vt::detail
