// `auto [a, b] = t` of a Tensor, which is one value: an assertion that says what to write.
#pragma once

#include <type_traits>
#include <utility>

#include <vt/tensor.hpp>

namespace vt::detail {
/// Compiled where a structured binding asks for the number of parts, and nowhere else.
template <class T>
constexpr std::size_t parts_of_one_value() {
  static_assert(!std::is_same_v<T, Tensor>,
                "vt: auto [a, b] = t: t is one vt::Tensor. vt::grad(f) gives the derivative by the "
                "first argument alone, vt::grad<0, 1>(f) by both; vt::unpack<2>(t) gives the parts "
                "of t along axis 0");
  return 2;
}
}  // namespace vt::detail

template <class T>
  requires std::is_same_v<T, vt::Tensor>
struct std::tuple_size<T> {
  static constexpr std::size_t value = vt::detail::parts_of_one_value<T>();
};
template <std::size_t I, class T>
  requires std::is_same_v<T, vt::Tensor>
struct std::tuple_element<I, T> {
  using type = T;
};
