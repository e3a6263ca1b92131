// Settings that come from the environment: one of some words, or a number.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace vt::detail {

/// The value of variable `name` if it is one of `words`, else an empty one. What is neither is left out, and vt::warnings() says so.
std::string_view word_from_environment(const char* name, std::initializer_list<std::string_view> words);

/// Variable `name` as a number from `least` (not below 0) to `most`, with an optional K, M, G or T (powers of 1024) where it counts bytes; else
/// `otherwise`. What is not such a number is left out, and vt::warnings() says so.
std::int64_t number_from_environment(const char* name, std::int64_t least, std::int64_t most, std::int64_t otherwise, bool bytes = false);

/// Variable `name`, 0 or 1.
inline bool switch_from_environment(const char* name, bool otherwise) {
  const std::string_view word = word_from_environment(name, {"0", "1"});
  return word.empty() ? otherwise : word == "1";
}

/// Those that more than one place asks for.
inline std::string_view backend_from_environment() { return word_from_environment("VT_BACKEND", {"interpreter", "cpu", "cuda"}); }
inline std::string_view isa_from_environment() { return word_from_environment("VT_CPU_ISA", {"sse2", "avx2", "avx512"}); }

}  // namespace vt::detail
