// Settings that come from the environment: one of some words, or a number.
#include "environment.hpp"

#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string>

#include "warnings.hpp"

namespace vt::detail {

std::string_view word_from_environment(const char* name, std::initializer_list<std::string_view> words) {
  const char* text = std::getenv(name);
  if (!text || !*text) return {};
  std::string known;
  for (const std::string_view& word : words) {
    if (word == text) return word;
    if (!known.empty()) known += &word == words.end() - 1 ? " or " : ", ";
    known += word;
  }
  warn_once(std::string(name) + "=" + text + " is not " + known + ": ignored");
  return {};
}

std::optional<std::int64_t> number_from_environment(const char* name, std::int64_t least, std::int64_t most, bool bytes) {
  const char* text = std::getenv(name);
  if (!text || !*text) return {};
  const char* const end = text + std::strlen(text);
  std::int64_t number = 0;
  auto [at, error] = std::from_chars(text, end, number);
  int shift = 0;
  if (bytes && error == std::errc() && at + 1 == end) {
    constexpr std::string_view units = "KMGT";
    const std::size_t unit = units.find(static_cast<char>(*at & ~0x20));  // either case
    if (unit != units.npos) shift = 10 * (static_cast<int>(unit) + 1), ++at;
  }
  if (error == std::errc() && at == end && number >= least && number <= most >> shift) return number << shift;
  warn_once(std::string(name) + "=" + text + " is not " +
            (bytes ? "a number of bytes, which may end in K, M, G or T" : "a number from " + std::to_string(least) + " to " + std::to_string(most)) +
            ": ignored");
  return {};
}

}  // namespace vt::detail
