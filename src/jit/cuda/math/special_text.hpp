// The special functions as CUDA text, and which parts of it a kernel needs.
#pragma once

#include <string>
#include <string_view>

namespace vt::detail::cuda {

/// A function, struct or table: its name, the names of those that it uses (they stand before it),
/// and its text.
struct SpecialText {
  std::string_view name, needs, text;
};
/// All of them; the last has no name. special_text.cpp, which scripts/cuda_special writes.
extern const SpecialText special_texts[];

/// What of them `source` calls, which it does as vt_special::name(…) with f64 operands: to stand
/// between the prelude and the source. Empty where it calls none, as compilers read every line.
std::string special_source(std::string_view source);

}  // namespace vt::detail::cuda
