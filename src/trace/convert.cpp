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
  with_wide_type(wide, [&](auto from) { with_type(to, [&](auto tag) { run<decltype(from), decltype(tag)>(source, target, n); }); });
}

}  // namespace convert_runs

void convert_elements(const void* source, DType from, void* target, DType to, std::size_t n) {
  const DType wide = wide_of(from);
  if (from == to) {
    if (n) std::memcpy(target, source, n * size_of(from));
    return;
  }
  if (from == wide) return convert_runs::narrow(source, from, target, to, n);
  if (to == wide) return convert_runs::widen(source, from, target, n);
  // By way of the wide dtype, in pieces that stay in the nearest cache.
  constexpr std::size_t piece = 512;
  std::uint64_t between[piece];
  for (std::size_t done = 0; done < n; done += piece) {
    const std::size_t count = std::min(piece, n - done);
    convert_runs::widen(static_cast<const char*>(source) + done * size_of(from), from, between, count);
    convert_runs::narrow(between, wide, static_cast<char*>(target) + done * size_of(to), to, count);
  }
}

Scalar load_scalar(DType dtype, const void* source) {
  Scalar value;
  convert_elements(source, dtype, &value.natural, wide_of(dtype), 1);
  value.dtype = dtype;
  return value;
}

void store_scalar(const Scalar& value, void* target) { convert_elements(&value.natural, wide_of(value.dtype), target, value.dtype, 1); }

void fill_elements(const Scalar& value, void* target, std::size_t n) {
  std::uint64_t bits = 0;
  store_scalar(value, &bits);
  auto fill = [&](auto element) {
    std::memcpy(&element, &bits, sizeof element);
    std::fill_n(static_cast<decltype(element)*>(target), n, element);
  };
  switch (size_of(value.dtype)) {
    case 1: return fill(std::uint8_t{});
    case 2: return fill(std::uint16_t{});
    case 4: return fill(std::uint32_t{});
    default: return fill(std::uint64_t{});
  }
}

Scalar Scalar::converted(DType to) const {
  unsigned char before[8], after[8];
  store_scalar(*this, before);
  convert_elements(before, dtype, after, to, 1);
  return load_scalar(to, after);
}

}  // namespace vt::detail
