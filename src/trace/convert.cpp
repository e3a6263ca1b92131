// Conversion of runs of elements and of Scalars, by the rules of convert.hpp.
#include "convert.hpp"

#include <algorithm>
#include <cstring>

namespace vt::detail {

void convert_elements(const void* source, DType from, void* target, DType to, std::size_t n) {
  if (from == to) {
    if (n) std::memcpy(target, source, n * size_of(from));
    return;
  }
  with_type(from, [&](auto from_tag) {
    with_type(to, [&](auto to_tag) {
      using From = decltype(from_tag);
      using To = decltype(to_tag);
      const auto* in = static_cast<const From*>(source);
      auto* out = static_cast<To*>(target);
      for (std::size_t i = 0; i < n; ++i) out[i] = convert_value<To>(in[i]);
    });
  });
}

Scalar load_scalar(DType dtype, const void* source) {
  return with_type(dtype, [&](auto tag) {
    decltype(tag) value;
    std::memcpy(&value, source, sizeof value);
    return Scalar(value);
  });
}

void store_scalar(const Scalar& value, void* target) { fill_elements(value, target, 1); }

void fill_elements(const Scalar& value, void* target, std::size_t n) {
  with_type(value.dtype, [&](auto tag) {
    using T = decltype(tag);
    T element{};
    if constexpr (is_real_type<T>) element = from_double<T>(value.real);
    else if constexpr (std::is_same_v<T, bool>) element = value.integer != 0;
    else if constexpr (std::is_unsigned_v<T>) element = static_cast<T>(value.natural);
    else element = static_cast<T>(value.integer);
    std::fill_n(static_cast<T*>(target), n, element);
  });
}

Scalar Scalar::converted(DType to) const {
  unsigned char before[8], after[8];
  store_scalar(*this, before);
  convert_elements(before, dtype, after, to, 1);
  return load_scalar(to, after);
}

}  // namespace vt::detail
