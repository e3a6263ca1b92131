// Param: a number among a function's parameters or options that refuses a bool.
#pragma once

#include <concepts>
#include <limits>
#include <type_traits>

namespace vt {

namespace detail {
/// What converts to a number of type T without loss of its kind. Bools are among it, so that Param
/// can say what is wrong with them.
template <class From, class T>
concept ParamFor = std::convertible_to<From, T> &&
                   (std::floating_point<T> || !std::floating_point<std::remove_cvref_t<From>>);
}  // namespace detail

/// A T made of any number but a bool: where one lands on a number it was meant for another
/// parameter, such as keepdims or reverse. Integers beyond T are the nearest T, so that what is out
/// of range is not taken for something else.
template <class T>
class Param {
 public:
  template <detail::ParamFor<T> From>
  constexpr Param(From value) : value_(nearest(value)) {
    static_assert(!std::same_as<From, bool>,
                  "vt: a bool given where a number belongs (an axis, a count, a seed, ord or "
                  "ddof): give the numbers first and true or "
                  "false in its own place behind them, as in vt::sum(x, 0, true), or write 0 or 1");
  }
  constexpr operator T() const { return value_; }

 private:
  template <class From>
  static constexpr T nearest(From value) {
    if constexpr (std::integral<T> && std::integral<From> && sizeof(From) > sizeof(T)) {
      if (value > static_cast<From>((std::numeric_limits<T>::max)()))
        return (std::numeric_limits<T>::max)();
      if constexpr (std::is_signed_v<From>)
        if (value < static_cast<From>((std::numeric_limits<T>::min)()))
          return (std::numeric_limits<T>::min)();
    }
    return static_cast<T>(value);
  }

  T value_;
};

}  // namespace vt
