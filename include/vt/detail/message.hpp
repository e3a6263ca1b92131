// Messages: fmt behind one function that is no template, as some two hundred places format
// messages; and the word that was meant.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace vt {
template <class T>
class Param;
}  // namespace vt

namespace vt::detail {

/// An argument of a message: a text or a number.
struct MessagePart {
  enum class Kind : std::uint8_t { text, letter, truth, f32, f64, i64, u64 } kind;
  union {
    std::string_view text;
    char letter;
    bool truth;
    float f32;
    double f64;
    std::int64_t i64;
    std::uint64_t u64;
  };

  MessagePart(std::string_view t) : kind(Kind::text), text(t) {}
  MessagePart(const std::string& t) : kind(Kind::text), text(t) {}
  MessagePart(const char* t) : kind(Kind::text), text(t) {}
  MessagePart(char c) : kind(Kind::letter), letter(c) {}
  MessagePart(bool b) : kind(Kind::truth), truth(b) {}
  MessagePart(float number) : kind(Kind::f32), f32(number) {}
  MessagePart(double number) : kind(Kind::f64), f64(number) {}
  template <std::integral T>
    requires(!std::same_as<T, char> && !std::same_as<T, bool>)
  [[gnu::always_inline]] MessagePart(T number)
      : kind(std::is_signed_v<T> ? Kind::i64 : Kind::u64), i64(static_cast<std::int64_t>(number)) {}
  template <class T>
  MessagePart(const Param<T>& number) : MessagePart(static_cast<T>(number)) {}
};

/// fmt::format(pattern, parts…).
std::string formatted(std::string_view pattern, std::initializer_list<MessagePart> parts);
template <class... Parts>
[[gnu::always_inline]] inline std::string formatted(std::string_view pattern,
                                                    const Parts&... parts) {
  return formatted(pattern, {MessagePart(parts)...});
}

/// Which of the known words was meant by one that is none of them: the same but for case, else the
/// nearest one: one change away in words of four letters or more, two in those of six or more.
/// Empty: none.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> known);
/// ` (did you mean "batch"?)`, or nothing.
std::string did_you_mean(std::string_view word, std::span<const std::string_view> known,
                         char quote = '"');

}  // namespace vt::detail
