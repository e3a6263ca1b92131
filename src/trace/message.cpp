// Filling in messages.
#include <vt/detail/message.hpp>

#include <charconv>
#include <cmath>

namespace vt::detail {

namespace message_text {

// The shortest digits that give the number back; an exponent only where zeros would outnumber them.
template <class T>
void append_real(std::string& out, T value) {
  const bool fixed = value == 0 || (std::abs(value) >= T(1e-4) && std::abs(value) < T(1e16));
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value, fixed ? std::chars_format::fixed : std::chars_format::scientific).ptr;
  out.append(digits, end);
}

}  // namespace message_text

void MessagePart::append_to(std::string& out) const {
  char digits[32];
  const auto number = [&](auto value) { out.append(digits, std::to_chars(digits, digits + sizeof(digits), value).ptr); };
  switch (kind_) {
    case Kind::text: out += text_; break;
    case Kind::letter: out += letter_; break;
    case Kind::single: message_text::append_real(out, static_cast<float>(real_)); break;
    case Kind::real: message_text::append_real(out, real_); break;
    case Kind::integer: number(integer_); break;
    case Kind::natural: number(static_cast<std::uint64_t>(integer_)); break;
  }
}

std::string worded(std::string_view pattern, std::initializer_list<MessagePart> parts) {
  std::string out;
  for (const MessagePart& part : parts) {
    const std::size_t hole = pattern.find("{}");
    out += pattern.substr(0, hole);
    if (hole == std::string_view::npos) return out;
    part.append_to(out);
    pattern.remove_prefix(hole + 2);
  }
  out += pattern;
  return out;
}

}  // namespace vt::detail
