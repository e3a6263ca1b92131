// Filling in messages. fmt would do it as well, but its header-only form is a tenth of what a prototype takes to compile.
#include <vt/detail/message.hpp>

#include <charconv>
#include <cstdlib>
#include <cstring>

namespace vt::detail {

namespace message_text {

/// The fewest digits that read back as the same number; an exponent below 1e-4 and from 1e16 on.
template <class Real>
std::string digits_of(Real x) {
  char text[64];
  const auto write = [&](std::chars_format form) { return std::string(text, std::to_chars(text, text + sizeof text, x, form).ptr); };
  std::string scientific = write(std::chars_format::scientific);
  const std::size_t e = scientific.find('e');
  if (e == std::string::npos) return scientific;  // inf and nan
  const int exponent = std::atoi(scientific.c_str() + e + 1);
  return exponent < -4 || exponent >= 16 ? scientific : write(std::chars_format::fixed);
}

struct Writer {
  std::string& out;
  void operator()(std::string_view text) const { out += text; }
  void operator()(char letter) const { out += letter; }
  void operator()(bool truth) const { out += truth ? "true" : "false"; }
  void operator()(float x) const { out += digits_of(x); }
  void operator()(double x) const { out += digits_of(x); }
  void operator()(std::int64_t x) const { out += std::to_string(x); }
  void operator()(std::uint64_t x) const { out += std::to_string(x); }
};

}  // namespace message_text

std::string worded(std::string_view pattern, std::initializer_list<MessagePart> parts) {
  std::string text;
  const MessagePart* next = parts.begin();
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c != '{' && c != '}') {
      text += c;
      continue;
    }
    ++i;  // the second one: of a doubled brace, or the end of a hole
    if (c == '{' && pattern[i] == '}') std::visit(message_text::Writer{text}, (next++)->value);
    else text += c;
  }
  return text;
}

}  // namespace vt::detail
