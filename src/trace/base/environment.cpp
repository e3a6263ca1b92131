// Settings from environment variables: one of several words, or a number.
#include "environment.hpp"

#include <cstdlib>
#include <string>

#include "warnings.hpp"

namespace vt::detail {

std::string_view word_from_environment(const char* name,
                                       std::initializer_list<std::string_view> words) {
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

std::int64_t number_from_environment(const char* name, std::int64_t least, std::int64_t most,
                                     std::int64_t otherwise, bool bytes) {
  const char* text = std::getenv(name);
  if (!text || !*text) return otherwise;
  const char* at = text;
  std::int64_t number = 0;
  bool fits = true;
  for (; *at >= '0' && *at <= '9'; ++at)
    fits = fits && !__builtin_mul_overflow(number, 10, &number) &&
           !__builtin_add_overflow(number, *at - '0', &number);
  fits = fits && at != text;
  int shift = 0;
  if (bytes && *at) {
    constexpr std::string_view units = "KMGT";
    const std::size_t unit = units.find(static_cast<char>(*at & ~0x20));  // either case
    if (unit != units.npos) shift = 10 * (static_cast<int>(unit) + 1), ++at;
  }
  if (fits && !*at && number >= least && number <= most >> shift) return number << shift;
  warn_once(std::string(name) + "=" + text + " is not " +
            (bytes ? "a number of bytes, which may end in K, M, G or T"
                   : "a number from " + std::to_string(least) + " to " + std::to_string(most)) +
            ": ignored");
  return otherwise;
}

void check_settings() {
  backend_from_environment();
  isa_from_environment();
  lanes_from_environment();
  autobatch_from_environment();
  tiers_from_environment();
  machine_from_environment();
  perf_from_environment();
  gdb_from_environment();
  tf32_from_environment();
  cuda_loops_from_environment();
  cuda_graphs_from_environment();
}

}  // namespace vt::detail
