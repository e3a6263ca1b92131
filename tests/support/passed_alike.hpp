// Are two declarations of a C function the same to whoever calls it? For vt's own declarations of
// CUDA's functions against NVIDIA's headers.
#pragma once

#include <type_traits>

namespace vt_test {

// Handles are other pointers here than there and enumerations are numbers: what must agree is what
// a call passes.
template <class A, class B>
constexpr bool passed_alike() {
  if constexpr (std::is_pointer_v<A> && std::is_pointer_v<B>) {
    using C = std::remove_cv_t<std::remove_pointer_t<A>>;
    using D = std::remove_cv_t<std::remove_pointer_t<B>>;
    constexpr bool opaque = !(std::is_scalar_v<C> && std::is_scalar_v<D>);
    if constexpr (opaque) {
      return std::is_scalar_v<C> == std::is_scalar_v<D>;
    } else {
      return std::is_const_v<std::remove_pointer_t<A>> ==
                 std::is_const_v<std::remove_pointer_t<B>> &&
             passed_alike<C, D>();
    }
  } else {
    constexpr bool numbers = (std::is_integral_v<A> || std::is_enum_v<A>) &&
                             (std::is_integral_v<B> || std::is_enum_v<B>);
    return sizeof(A) == sizeof(B) && (numbers || std::is_same_v<A, B>);
  }
}
template <class A, class B>
struct Alike;
template <class R, class... A, class S, class... B>
struct Alike<R (*)(A...), S (*)(B...)> {
  static constexpr bool value = [] {
    if constexpr (sizeof...(A) == sizeof...(B))
      return passed_alike<R, S>() && (passed_alike<A, B>() && ... && true);
    else return false;
  }();
};

static_assert(!Alike<int (*)(int), int (*)(long)>::value &&
              !Alike<int (*)(int*), int (*)(int)>::value &&
              !Alike<int (*)(int*), int (*)(double*)>::value);

}  // namespace vt_test
