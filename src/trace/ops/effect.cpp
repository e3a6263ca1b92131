// The entry points of debug_print, check and callback: checks formats and types,
// and emits the equations.
#include <vt/detail/small_vec.hpp>
#include <vt/effects.hpp>

#include <exception>
#include <memory>
#include <string>

#include <vt/detail/message.hpp>

#include "../ir/effects.hpp"
#include "../ir/printer.hpp"
#include "../record/scope.hpp"
#include "support/operands.hpp"

namespace vt::detail {

namespace effect_ops {

/// The format with texts filled in and places numbered by operands, which are the Tensors among the
/// arguments.
std::string placed(const TextFormat& format, const char* function,
                   std::span<const TextArgument> arguments, std::vector<Tensor>& operands,
                   CallSite where) {
  const auto refuse = [&](const std::string& what) {
    fail(ErrorKind::value, formatted("{}: {} in \"{}\"", function, what, format.text), where);
  };
  const auto append_literal = [](std::string& to, std::string_view text) {
    for (char c : text) {
      to += c;
      if (c == '{' || c == '}') to += c;
    }
  };
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].is_text && !arguments[i].tensor.defined())
      refuse(formatted("argument {} is an empty Tensor", i));
  std::string text;
  Vec<bool> used(arguments.size());
  for (const TextPart& part : parts_of(format.text, function, where)) {
    if (part.value < 0) {
      append_literal(text, part.text);
      continue;
    }
    if (static_cast<std::size_t>(part.value) >= arguments.size())
      refuse(formatted("there is no argument {} for a place", part.value));
    const TextArgument& a = arguments[part.value];
    used[part.value] = true;
    try {
      if (a.is_text) {
        append_literal(text, formatted(part.text.empty() ? "{}" : "{:" + part.text + "}", a.text));
        continue;
      }
      // Tried on a zero, so that a wrong specification fails here and not when the program runs.
      const double zero[2] = {};
      printer::value_text(Aval(a.tensor.dtype(), Shape{}), zero, part.text);
    } catch (const std::exception& e) {
      refuse(formatted("argument {} cannot be written with {{:{}}} ({})", part.value, part.text,
                       e.what()));
    }
    text += formatted("{{{}{}{}}}", operands.size(), part.text.empty() ? "" : ":", part.text);
    operands.push_back(a.tensor);
  }
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i]) refuse(formatted("there is no place for argument {}", i));
  return text;
}

}  // namespace effect_ops

void print_flat(const TextFormat& format, const PrintOptions& options,
                std::span<const TextArgument> arguments) {
  const CallSite line = user_line(format.where);
  std::vector<Tensor> operands;
  PrintParams p;
  p.text = effect_ops::placed(format, "vt::debug_print", arguments, operands, line);
  p.per_lane = options.per_lane;
  emit_all(Op::debug_print, make_params(std::move(p)), operands, line);
}

void check_flat(const Operand& holds, const TextFormat& format,
                std::span<const TextArgument> arguments) {
  const CallSite line = user_line(holds.where);
  if (!holds.tensor.defined())
    fail(ErrorKind::value, "vt::check: the condition is an empty Tensor", line);
  std::vector<Tensor> values;
  CheckParams p;
  p.text = effect_ops::placed(format, "vt::check", arguments, values, line);
  p.line = line;
  std::vector<Tensor> operands{to_bool(holds.tensor, line)};
  operands.insert(operands.end(), values.begin(), values.end());
  emit_all(Op::check, make_params(std::move(p)), operands, line);
}

void check_leaves_finite(std::span<const Tensor> leaves, std::span<const std::string> paths,
                         CallSite where) {
  const UserLine line(where);
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    need("check_finite", leaves[i], where);
    if (!is_inexact(leaves[i].dtype())) continue;
    CheckParams p;
    p.text = (paths[i].empty() ? "a Tensor" : paths[i]) + " is not finite";
    p.function = "vt::check_finite";
    for (std::size_t k = p.text.size(); k-- > 0;)  // a brace of a key is none of a format
      if (p.text[k] == '{' || p.text[k] == '}') p.text.insert(k, 1, p.text[k]);
    p.line = where;
    const Tensor holds = isfinite({leaves[i], where.file, where.line});
    emit_all(Op::check, make_params(std::move(p)), {&holds, 1}, where);
  }
}

std::vector<Tensor> callback_flat(const HostCall& call, std::span<const Tensor> like,
                                  std::span<const Tensor> arguments, const CallbackOptions& options,
                                  CallSite where) {
  const bool pure = call.pure;
  const char* name = pure ? "vt::pure_callback" : "vt::callback";
  CallbackParams p;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!arguments[i].defined())
      fail(ErrorKind::value, formatted("{}: argument leaf {} is an empty Tensor", name, i), where);
  for (std::size_t i = 0; i < like.size(); ++i) {
    if (!like[i].defined())
      fail(ErrorKind::value,
           formatted("{}: result leaf {} has no shape: the Tensor it is to be like is empty", name,
                     i),
           where);
    p.results.emplace_back(like[i].dtype(), like[i].shape());
  }
  if (pure && p.results.empty()) return {};  // nothing depends on it
  auto function = std::make_shared<HostFunction>();
  function->name = formatted("{} ({})", name, options.name);
  function->run = call.run;
  function->callable = call.callable;
  function->static_key = call.static_key;
  p.function = std::move(function);
  p.pure = pure;
  p.takes_lanes = options.takes_lanes;
  const auto results =
      emit_all(Op::callback, make_params(std::move(p)), arguments, user_line(where));
  return {results.begin(), results.end()};
}

}  // namespace vt::detail
