// Entry points of the custom derivative rules and of checkpoint: under a transform they become
// equations, outside they just call.
#include <algorithm>
#include <memory>
#include <string>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/effects.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "../../trace/record/state.hpp"

namespace vt::detail {

namespace custom_entry {

inline bool is_traced(std::span<const Tensor> arguments) {
  return current_level() > 0 || any_of(arguments, [](const Tensor& t) { return is_tracer(t); });
}

inline std::vector<Tensor> joined(std::initializer_list<std::span<const Tensor>> parts) {
  std::vector<Tensor> all;
  for (const auto& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

/// The types of the tangents or cotangents of values of these types.
inline Vec<Aval> directions(std::span<const Aval> avals) {
  Vec<Aval> all;
  for (const Aval& a : avals) all.emplace_back(a.dtype, a.shape);
  return all;
}

/// Gives a user's rules the Tensors that they capture of the function that calls them: those are
/// gone by the time that a transform asks for a rule. Where there are any, the rules are recorded
/// now, and what they capture is returned: more operands behind the arguments, which the rules take
/// there. A rule that cannot be recorded now stays as it is, and says so if it is ever asked for.
/// Rules that rules call (their own function's, often) are recorded once more, for second
/// derivatives, and then no further.
class ClosedRules {
 public:
  ClosedRules(CustomRule& rule, std::span<const Aval> operands, std::span<const Aval> results,
              std::span<const Tensor> arguments, CallSite where)
      : rule_(rule), operands_(operands), results_(results), arguments_(arguments), where_(where) {}

  std::vector<Tensor> close() {
    constinit static thread_local int depth = 0;
    if (depth == 2) return {};
    struct Deeper {
      Deeper() { ++depth; }
      ~Deeper() { --depth; }
    } const deeper;
    try {
      if (rule_.jvp) close_jvp();
      else close_vjp();
    } catch (...) {
      return {};
    }
    return std::move(captured_);
  }

 private:
  void close_jvp() {
    Vec<Aval> avals(operands_.begin(), operands_.end());
    for (Aval& a : directions(operands_)) avals.push_back(std::move(a));
    // What the values of the arguments decide may be decided now; tangents have no values yet.
    std::vector<Tensor> known(arguments_.begin(), arguments_.end());
    known.resize(avals.size());
    Recorded jvp = recorded(rule_.jvp, avals, known);
    if (!takes_tracers({&jvp})) return;
    rule_.jvp = [g = shared(jvp), m = operands_.size()](std::span<const Tensor> in) {
      const std::size_t all = in.size() / 2;
      return replay(*g, joined({in.first(m), in.subspan(all, m), in.subspan(m, all - m)}));
    };
  }
  void close_vjp() {
    Recorded forward = recorded(rule_.forward, operands_, arguments_);
    const std::size_t n = results_.size(), residuals = forward.graph.outputs.size() - n;
    Vec<Aval> avals;
    for (std::size_t i = 0; i < residuals; ++i)
      avals.push_back(forward.graph.aval(forward.graph.outputs[n + i]));
    for (Aval& a : directions(results_)) avals.push_back(std::move(a));
    Recorded backward = recorded(rule_.backward, avals, {});
    if (!takes_tracers({&forward, &backward})) return;
    rule_.forward = [g = shared(forward), m = operands_.size()](std::span<const Tensor> in) {
      return joined({replay(*g, in), in.subspan(m)});
    };
    rule_.backward = [g = shared(backward), residuals,
                      k = captured_.size()](std::span<const Tensor> in) {
      std::vector<Tensor> out = replay(
          *g, joined({in.first(residuals), in.subspan(residuals + k), in.subspan(residuals, k)}));
      for (const Tensor& t : in.subspan(residuals, k))
        out.push_back(full_tensor(Scalar(false).converted(t.dtype()), Aval(t.dtype(), t.shape())));
      return out;
    };
  }
  Recorded recorded(const FlatFunction& f, std::span<const Aval> avals,
                    std::span<const Tensor> known) const {
    return record(f, avals,
                  {.kind = ScopeKind::grad,
                   .transform = rule_.name.c_str(),
                   .concrete = known,
                   .where = where_});
  }
  bool takes_tracers(std::initializer_list<Recorded*> parts) {
    captured_ = share_captures({parts.begin(), parts.size()});
    if (!any_of(captured_, [](const Tensor& t) { return is_tracer(t); })) captured_.clear();
    return !captured_.empty();
  }
  static GraphRef shared(Recorded& r) {
    return std::make_shared<const GraphBody>(std::move(r.graph));
  }

  CustomRule& rule_;
  std::span<const Aval> operands_, results_;
  std::span<const Tensor> arguments_;
  CallSite where_;
  std::vector<Tensor> captured_;
};

/// The function as one equation. Its tracers stand for the arguments, so that where their values
/// may be looked at outside, they may inside.
inline std::vector<Tensor> as_equation(Op op, const char* name, std::shared_ptr<CustomRule> rule,
                                       const FlatFunction& f, std::span<const Tensor> arguments,
                                       bool captures, CallSite where) {
  Vec<Aval> avals;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].defined())
      fail(ErrorKind::value,
           std::string(name) + ": argument " + std::to_string(i) + " is an empty Tensor", where);
    avals.push_back(aval_of(arguments[i]));
  }
  Vec<StateUpdate> updates;
  // A rule of the user's says nothing of variables; what a checkpoint does to them, it does going
  // forward.
  Recorded r =
      record(op == Op::checkpoint ? with_updates(f, updates) : f, avals,
             {.kind = ScopeKind::grad, .transform = name, .concrete = arguments, .where = where});
  if (r.graph.outputs.empty() && !has_effects(r.graph)) return {};
  std::vector<Tensor> operands(arguments.begin(), arguments.end());
  if (rule) rule->name = name;
  if (captures) {
    Vec<Aval> results;
    for (Var v : r.graph.outputs) results.push_back(r.graph.aval(v));
    for (Tensor& t : ClosedRules(*rule, avals, results, arguments, where).close()) {
      r.graph.inputs.insert(r.graph.inputs.begin() + static_cast<std::ptrdiff_t>(operands.size()),
                            r.graph.fresh(aval_of(t)));
      operands.push_back(std::move(t));
    }
  }
  CallParams p;
  p.body = std::make_shared<GraphBody>(std::move(r.graph));
  p.rule = std::move(rule);
  p.explicit_operands = static_cast<int>(operands.size());
  operands.insert(operands.end(), r.captured.begin(), r.captured.end());
  const SmallVec<Tensor, 1> results = emit_all(op, make_params(std::move(p)), operands, where);
  std::vector<Tensor> own(results.begin(), results.end());
  apply_updates(updates, std::span<const Tensor>(own).subspan(own.size() - updates.size()));
  own.resize(own.size() - updates.size());
  return own;
}

}  // namespace custom_entry

std::vector<Tensor> custom_jvp_flat(const FlatFunction& f, const FlatFunction& jvp,
                                    std::span<const Tensor> arguments, CallSite where,
                                    bool captures, const FlatFunction& transpose, int linear) {
  if (!custom_entry::is_traced(arguments)) return f(arguments);
  auto rule = std::make_shared<CustomRule>();
  rule->jvp = jvp;
  rule->transpose = transpose;
  rule->linear = linear;
  return custom_entry::as_equation(Op::custom_jvp, "vt::custom_jvp", std::move(rule), f, arguments,
                                   captures, where);
}

std::vector<Tensor> custom_vjp_flat(const FlatFunction& f, const FlatFunction& forward,
                                    const FlatFunction& backward, std::span<const Tensor> arguments,
                                    CallSite where, bool captures) {
  if (!custom_entry::is_traced(arguments)) return f(arguments);
  auto rule = std::make_shared<CustomRule>();
  rule->forward = forward;
  rule->backward = backward;
  return custom_entry::as_equation(Op::custom_vjp, "vt::custom_vjp", std::move(rule), f, arguments,
                                   captures, where);
}

std::vector<Tensor> checkpoint_flat(const FlatFunction& f, std::span<const Tensor> arguments,
                                    CallSite where) {
  if (!custom_entry::is_traced(arguments)) return f(arguments);
  return custom_entry::as_equation(Op::checkpoint, "vt::checkpoint", nullptr, f, arguments, false,
                                   where);
}

}  // namespace vt::detail
