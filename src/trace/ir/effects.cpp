// Effects: finding them in sub-graphs, and the texts that they write.
#include "effects.hpp"

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../base/stack.hpp"
#include "printer.hpp"
#include "recursive_function.hpp"

namespace vt::detail {

bool has_effects(const GraphBody& g) {
  signed char known = g.facts.effects.load(std::memory_order_relaxed);
  if (known < 0) {
    need_stack({});
    known = 0;
    for (const Equation& e : g.equations)
      if (has_effect(e)) known = 1;
    g.facts.effects.store(known, std::memory_order_relaxed);
  }
  return known == 1;
}

bool effect_search::found(Op op, const ParamsRef& params) {
  if (op == Op::callback) return !params->as<CallbackParams>().pure;
  if (family_of(op) == Family::effect) return true;
  if (op == Op::recursive_call) return params->as<RecursionParams>().function->effects;
  if (const CallParams* const call = params ? params->get_if<CallParams>() : nullptr)
    return has_effects(*call->body);
  for (const GraphRef& body : bodies_of(params))
    if (has_effects(*body)) return true;
  return false;
}

// --- texts ---------------------------------------------------------------------------------------

Vec<TextPart> parts_of(std::string_view format, const char* function, CallSite where) {
  const auto refuse = [&](const char* what) {
    fail(ErrorKind::value, formatted("{}: {} in the format \"{}\"", function, what, format), where);
  };
  Vec<TextPart> parts;
  const auto text = [&]() -> std::string& {
    if (parts.empty() || parts.back().value >= 0) parts.emplace_back();
    return parts.back().text;
  };
  int next = 0;
  for (std::size_t i = 0; i < format.size(); ++i) {
    const char c = format[i];
    if (c != '{' && c != '}') {
      text() += c;
      continue;
    }
    if (i + 1 < format.size() && format[i + 1] == c) {
      text() += c;
      ++i;
      continue;
    }
    const std::size_t end = c == '{' ? format.find('}', i) : std::string_view::npos;
    if (end == std::string_view::npos)
      refuse(c == '{' ? "a { is not closed" : "a } closes nothing");
    const std::string_view inside = format.substr(i + 1, end - i - 1);
    std::size_t digits = 0;
    int index = 0;
    while (digits < inside.size() && inside[digits] >= '0' && inside[digits] <= '9' && digits < 6)
      index = 10 * index + (inside[digits++] - '0');
    if (digits == 0) index = next++;
    if (digits < inside.size() && inside[digits] != ':')
      refuse("there must be nothing, an index or a specification between the braces");
    parts.push_back({std::string(inside.substr(std::min(inside.size(), digits + 1))), index});
    i = end;
  }
  return parts;
}

std::string filled_in(std::string_view format, std::span<const TextValue> values) {
  std::string text;
  for (const TextPart& part : parts_of(format, "vt::debug_print", {})) {
    if (part.value < 0) {
      text += part.text;
      continue;
    }
    const TextValue& v = values[part.value];
    text += printer::value_text(v.aval, v.data, part.text);
  }
  return text;
}

// --- lanes ---------------------------------------------------------------------------------------

void append_index(Vec<std::int64_t>& to, std::span<const std::int64_t> extents, std::int64_t lane) {
  const std::size_t first = to.size();
  to.resize(first + extents.size());
  for (std::size_t k = extents.size(); k-- > 0; lane /= extents[k])
    to[first + k] = lane % extents[k];
}

}  // namespace vt::detail
