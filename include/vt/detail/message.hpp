// Messages: fmt behind a function that is no template, as the sources word some two hundred of them.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

namespace vt::detail {

/// An argument of a message: a text or a number.
struct MessagePart {
  std::variant<std::string_view, char, bool, float, double, std::int64_t, std::uint64_t> value;

  MessagePart(std::string_view text) : value(text) {}
  MessagePart(const std::string& text) : value(std::string_view(text)) {}
  MessagePart(const char* text) : value(std::string_view(text)) {}
  MessagePart(char letter) : value(letter) {}
  MessagePart(bool truth) : value(truth) {}
  MessagePart(float number) : value(number) {}
  MessagePart(double number) : value(number) {}
  template <std::integral T>
    requires(!std::same_as<T, char> && !std::same_as<T, bool>)
  MessagePart(T number) : value(static_cast<std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>>(number)) {}
};

/// fmt::format(pattern, parts…).
std::string worded(std::string_view pattern, std::initializer_list<MessagePart> parts);
template <class... Parts>
std::string worded(std::string_view pattern, const Parts&... parts) {
  return worded(pattern, {MessagePart(parts)...});
}

}  // namespace vt::detail
