// Entry points of the custom derivative rules and of checkpoint: under a transform they become equations, outside they just call.
#include <algorithm>
#include <memory>
#include <string>

#include <vt/detail/entry_points.hpp>
#include <vt/small_vec.hpp>

#include "../../trace/effects.hpp"
#include "../../trace/node.hpp"
#include "../../trace/scope.hpp"
#include "../../trace/state.hpp"

namespace vt::detail {

namespace custom_entry {

inline bool is_traced(std::span<const Tensor> arguments) {
  return current_level() > 0 || any_of(arguments, [](const Tensor& t) { return is_tracer(t); });
}

/// The function as one equation. Its tracers stand for the arguments, so that where their values may be looked at outside, they
/// may inside.
inline std::vector<Tensor> as_equation(Op op, const char* name, std::shared_ptr<CustomRule> rule, const FlatFunction& f,
                                       std::span<const Tensor> arguments, Where where) {
  Vec<Aval> avals;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined()) fail(ErrorKind::value, std::string(name) + ": argument " + std::to_string(i) + " is an empty Tensor", where);
    avals.push_back(aval_of(arguments[i]));
  }
  Vec<StateUpdate> updates;
  // A rule of the user's says nothing of variables; what a checkpoint does to them, it does going forward.
  const Recorded r = record(op == Op::checkpoint ? with_updates(f, updates) : f, avals,
                            {.kind = ScopeKind::grad, .transform = name, .concrete = arguments, .where = where});
  if (r.graph.outputs.empty() && !has_effects(r.graph)) return {};
  CallParams p;
  p.body = new_shared<GraphBody>(r.graph);
  if (rule) rule->name = name;
  p.rule = std::move(rule);
  p.explicit_operands = static_cast<int>(arguments.size());
  std::vector<Tensor> operands(arguments.begin(), arguments.end());
  operands.insert(operands.end(), r.captured.begin(), r.captured.end());
  const SmallVec<Tensor, 1> results = emit_all(op, make_params(std::move(p)), operands, where);
  std::vector<Tensor> own(results.begin(), results.end());
  apply_updates(updates, std::span<const Tensor>(own).subspan(own.size() - updates.size()));
  own.resize(own.size() - updates.size());
  return own;
}

}  // namespace custom_entry

std::vector<Tensor> custom_jvp_flat(const FlatFunction& f, const FlatFunction& jvp, std::span<const Tensor> arguments, Where where,
                                    const FlatFunction& transpose, int linear) {
  if (!custom_entry::is_traced(arguments)) return f(arguments);
  auto rule = new_shared<CustomRule>();
  rule->jvp = jvp;
  rule->transpose = transpose;
  rule->linear = linear;
  return custom_entry::as_equation(Op::custom_jvp, "vt::custom_jvp", std::move(rule), f, arguments, where);
}

std::vector<Tensor> custom_vjp_flat(const FlatFunction& f, const FlatFunction& forward, const FlatFunction& backward,
                                    std::span<const Tensor> arguments, Where where) {
  if (!custom_entry::is_traced(arguments)) return f(arguments);
  auto rule = new_shared<CustomRule>();
  rule->forward = forward;
  rule->backward = backward;
  return custom_entry::as_equation(Op::custom_vjp, "vt::custom_vjp", std::move(rule), f, arguments, where);
}

std::vector<Tensor> checkpoint_flat(const FlatFunction& f, std::span<const Tensor> arguments, Where where) {
  if (!custom_entry::is_traced(arguments)) return f(arguments);
  return custom_entry::as_equation(Op::checkpoint, "vt::checkpoint", nullptr, f, arguments, where);
}

}  // namespace vt::detail
