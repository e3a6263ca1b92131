// Effects: equations that do something besides giving results (print, check, call the host). They
// happen once, in their order, and only where the program goes: no pass removes, merges, repeats or
// skips them.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include <vt/detail/small_vec.hpp>

#include "graph.hpp"

namespace vt::detail {

namespace effect_search {
bool found(Op, const ParamsRef&);
}
/// Does an equation with these parameters have an effect, or one in its sub-graphs?
inline bool has_effect(Op op, const ParamsRef& params) {
  const Family family = family_of(op);
  return (family == Family::effect || family == Family::structure) &&
         effect_search::found(op, params);
}
inline bool has_effect(const Equation& e) { return has_effect(e.op, e.params); }
/// Asks each sub-graph once.
bool has_effects(const GraphBody&);

/// A piece of a format string: text, or a value with its specification ("" for none).
struct TextPart {
  std::string text;  ///< the specification if it is a value
  int value = -1;
};
/// Takes a format string of fmt's kind apart; values without an index are counted. Throws
/// Error(value) if its braces do not match.
Vec<TextPart> parts_of(std::string_view format, const char* function, CallSite);
/// What stands behind the values of a format string.
struct TextValue {
  Aval aval;
  const void* data;
};
std::string filled_in(std::string_view format, std::span<const TextValue>);

/// The place of a lane in an array of lanes with these extents, the last fastest.
void append_index(Vec<std::int64_t>& to, std::span<const std::int64_t> extents, std::int64_t lane);

}  // namespace vt::detail
