// The names of a struct's fields, for messages.
#include <cctype>
#include <string_view>

#include <vt/detail/aggregate.hpp>

namespace vt::detail {

// "… p = {(& unborn<T>.Unborn<T>::value.T::weights)}; …]" by g++, "… {&unborn.value.weights}]" by
// clang.
std::string field_name(const char* text, std::size_t index) {
  std::string_view name = text;
  const auto letter = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || (c & 0x80) != 0;
  };
  const std::size_t end = name.rfind('}');
  std::string_view found;
  if (end != std::string_view::npos) {
    std::size_t last = end;
    while (last > 0 && !letter(name[last - 1])) --last;
    std::size_t first = last;
    while (first > 0 && letter(name[first - 1])) --first;
    found = name.substr(first, last - first);
  }
  return found.empty() || std::isdigit(static_cast<unsigned char>(found[0])) != 0
             ? "field" + std::to_string(index)
             : std::string(found);
}

}  // namespace vt::detail
