// Messages: a pattern whose `{}` are filled with texts and numbers. Nothing but the list of arguments is a template: the sources
// make some two hundred messages, and a formatting library's templates were a tenth of what a header-only program takes to compile.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace vt::detail {

class MessagePart {
 public:
  MessagePart(std::string_view text) : kind_(Kind::text), text_(text) {}
  MessagePart(const std::string& text) : kind_(Kind::text), text_(text) {}
  MessagePart(const char* text) : kind_(Kind::text), text_(text) {}
  MessagePart(char letter) : kind_(Kind::letter), letter_(letter) {}
  MessagePart(double number) : kind_(Kind::real), real_(number) {}
  MessagePart(float number) : kind_(Kind::single), real_(number) {}
  template <std::integral T>
    requires(!std::same_as<T, char>)
  MessagePart(T number) : kind_(std::is_signed_v<T> ? Kind::integer : Kind::natural), integer_(static_cast<std::int64_t>(number)) {}
  MessagePart(bool value) : kind_(Kind::text), text_(value ? "true" : "false") {}

  void append_to(std::string&) const;

 private:
  enum class Kind : std::uint8_t { text, letter, single, real, integer, natural } kind_;
  union {
    std::string_view text_;
    char letter_;
    double real_;           // also of a float, which needs fewer digits
    std::int64_t integer_;  // a natural by its bits
  };
};

/// `pattern` with its k-th `{}` replaced by the k-th part.
std::string worded(std::string_view pattern, std::initializer_list<MessagePart> parts);
template <class... Parts>
std::string worded(std::string_view pattern, const Parts&... parts) {
  return worded(pattern, {MessagePart(parts)...});
}

}  // namespace vt::detail
