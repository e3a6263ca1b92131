// The derivatives of while loops as two equations: one runs the loop and keeps states, the other
// runs it backward. Their bodies are loops, but differentiated as such they would keep arrays of
// states in each state. Instead they know their derivatives, in terms of the loop that carries
// tangents beside its values, w(x, t) = (f(x), f′(x) t):
//  - The derivative of the loop that keeps its states is w, which keeps its own states.
//  - Let b(x, c) = cᵀ f′(x) be the loop run backward. w run backward from the cotangents (c₂, c)
//    gives b(x, c) for t, and for x it gives c₂ᵀ f′(x) plus the derivative of b(x, c) along t. So
//    the derivatives of b, forward and (as second derivatives are symmetric) reverse, are w run
//    backward.
//
// So each order of derivatives doubles the carry, and the memory for states with it.
#include <algorithm>
#include <memory>

#include "../../../trace/ir/effects.hpp"
#include "../../../trace/ir/sub_graph.hpp"
#include "../../../trace/record/without_effects.hpp"
#include "../build.hpp"
#include "while.hpp"

namespace vt::detail::control_linear {

namespace while_rules {

using LoopRef = std::shared_ptr<const ReversedLoop>;
using Tensors = std::span<const Tensor>;

bool any(const Flags& flags) { return std::find(flags.begin(), flags.end(), true) != flags.end(); }
bool any_defined(Tensors tensors) {
  bool any = false;
  for (const Tensor& t : tensors) any = any || t.defined();
  return any;
}
std::vector<Tensor> list(Tensors tensors) { return {tensors.begin(), tensors.end()}; }
void append(std::vector<Tensor>& to, Tensors tensors) {
  to.insert(to.end(), tensors.begin(), tensors.end());
}

/// `slots` 0: as many as the sizes of the operands allow.
LoopRef loop_of(const Equation& e, Tensors x, const Flags& wanted, std::int64_t slots = 0) {
  auto l = std::make_shared<ReversedLoop>();
  const auto& p = e.as<WhileParams>();
  l->equation = without_effects(e);
  l->condition = p.condition;
  l->body = p.body;
  l->slots = slots > 0 ? slots : slots_for(p, x);
  Dependence dependence = differentiable();
  l->operands = dependence.loop_operands(e, wanted);
  for (std::size_t i = 0; i < l->operands.size(); ++i)
    if (l->operands[i]) (i < l->carries() ? l->varying : l->shared_operands).push_back(i);
  return l;
}
/// The loop with its effects.
Equation loud(const ReversedLoop& l) {
  Equation e = l.equation;
  WhileParams p = l.params();
  p.condition = l.condition;
  p.body = l.body;
  e.params = make_params(std::move(p));
  return e;
}

/// The loop with cotangents for those carries only that the given ones reach: others stay zero in
/// all iterations.
LoopRef reached_from(const LoopRef& l, Tensors cts) {
  const GraphBody& body = *l->params().body;
  Dependence dependence = differentiable();
  Flags reached(l->carries());
  for (std::size_t i : l->varying) reached[i] = cts[i].defined();
  for (bool grew = true; grew;) {
    grew = false;
    for (std::size_t i : l->varying) {
      if (reached[i]) continue;
      Flags alone(body.inputs.size());
      alone[i] = true;
      const Flags next = dependence.outputs(body, alone);
      for (std::size_t k = 0; k < reached.size(); ++k)
        reached[i] = reached[i] || (next[k] && reached[k]);
      grew = grew || reached[i];
    }
  }
  auto made = std::make_shared<ReversedLoop>(*l);
  made->varying.clear();
  for (std::size_t i : l->varying) {
    made->operands[i] = reached[i];
    if (reached[i]) made->varying.push_back(i);
  }
  return made;
}

bool traced(Tensors tensors) {
  bool any = false;
  for (const Tensor& t : tensors) any = any || is_tracer(t);
  return any;
}

/// Rules of the user's need be no true derivatives, so that theirs are not symmetric, which ours of
/// the second order count on.
bool has_users_rule(const GraphBody& g) {
  return has_equation(g, [](const Equation& e) {
    const CallParams* call = e.params ? e.params->get_if<CallParams>() : nullptr;
    return (e.op == Op::custom_jvp || e.op == Op::custom_vjp) && call && call->rule &&
           !call->rule->own;
  });
}

/// `f` of the operands as an equation with a rule, where a transform may ask for it. A rule of the
/// user's in the body may also capture Tensors, which are no operands of ours; where a transform
/// may want to know what depends on them, it is given `open` equations.
std::vector<Tensor> as_equation(const ReversedLoop& l, const FlatFunction& f,
                                const FlatFunction& open, Tensors operands,
                                const std::shared_ptr<const CustomRule>& rule) {
  if (current_level() == 0 && !traced(operands)) return f(operands);
  if (has_users_rule(*l.body)) return open(operands);
  Vec<Aval> avals;
  for (const Tensor& t : operands) avals.push_back(aval_of(t));
  Recorded body = record(f, avals, {.kind = ScopeKind::branch, .transform = "vt::grad"});
  if (traced(body.captured)) return open(operands);
  CallParams p;
  p.body = shared(std::move(body.graph));
  p.rule = rule;
  p.explicit_operands = static_cast<int>(operands.size());
  std::vector<Tensor> all = list(operands);
  append(all, body.captured);
  return emitted(Op::custom_vjp, make_params(std::move(p)), all, l.equation.where);
}

std::shared_ptr<const CustomRule> rule_of(std::shared_ptr<const OwnDerivative> own) {
  auto rule = std::make_shared<CustomRule>();
  rule->name = "vt::while_loop";
  rule->own = std::move(own);
  return rule;
}

// --- the loop that keeps states: (x…) → (carry…, what it kept…) ----------------------------------

std::vector<Tensor> keeping(const LoopRef& l, Tensors x);
/// (x…, what it kept…), cotangents of the carries → cotangents of the operands that have one.
std::vector<Tensor> pulled_back(const LoopRef& l, std::vector<Tensor> saved, Tensors cts);

LoopRef quiet_loop(const LoopRef& l, Tensors x) {
  return loop_of(l->equation, x, l->operands, l->slots);
}

/// `results`: of the loop that keeps its states; inside of scans without them. Then the way back
/// runs the loop once more.
ControlLinear linearized(const LoopRef& l, const Flags& wanted, Tensors x,
                         std::vector<Tensor> results) {
  ControlLinear c;
  c.call.name = "vt::while_loop";
  c.call.residuals = list(x);
  c.call.push = forward_push(l->equation, wanted);
  if (!inside_scan()) {
    append(c.call.residuals, Tensors(results).subspan(l->carries()));
    c.call.pull = [l](Tensors saved, Tensors cts) { return pulled_back(l, list(saved), cts); };
  } else {
    c.call.pull = [l](Tensors x, Tensors cts) {
      std::vector<Tensor> saved = list(x);
      append(saved, Tensors(keeping(quiet_loop(l, x), x)).subspan(l->carries()));
      return pulled_back(l, std::move(saved), cts);
    };
  }
  c.results = std::move(results);
  return c;
}

std::shared_ptr<const CustomRule> keeping_rule(const LoopRef& l) {
  auto own = std::make_shared<OwnDerivative>();
  own->forward = [l](Tensors x, Tensors t) {
    const std::size_t n = l->carries();
    TangentForm form = with_tangents(loud(*l), x, t);
    Equation e = l->equation;
    e.params = form.params;
    const std::vector<Tensor> made =
        keeping(loop_of(e, form.operands, Flags(form.operands.size()), l->slots), form.operands);
    const std::size_t carries = (made.size() - 3) / 2;
    std::vector<Tensor> out, tangents;
    for (std::size_t first : {std::size_t{0}, carries})
      for (std::size_t i = 0; i < n; ++i) {
        const int place = form.result_tangent_at[i];
        out.push_back(made[first + static_cast<std::size_t>(form.result_at[i])]);
        tangents.push_back(place < 0 ? Tensor() : made[first + static_cast<std::size_t>(place)]);
      }
    append(out, Tensors(made).last(3));
    tangents.resize(out.size());
    append(out, tangents);
    return out;
  };
  own->linearize = [l](Tensors x, const Vec<bool>& wanted) {
    const LoopRef own_loop = loop_of(loud(*l), x, wanted, l->slots);
    ControlLinear c = linearized(own_loop, wanted, x, keeping(own_loop, x));
    return Linearization{std::move(c.results), std::move(c.call.residuals), l->carries(),
                         std::move(c.call.push), std::move(c.call.pull)};
  };
  return rule_of(std::move(own));
}

std::vector<Tensor> keeping(const LoopRef& l, Tensors x) {
  std::shared_ptr<const CustomRule> rule = keeping_rule(l);
  if (const Equation e = loud(*l); has_effect(e)) {
    auto with_quiet = std::make_shared<CustomRule>(*rule);
    with_quiet->quiet = keeping_rule(quiet_loop(l, x));
    rule = with_quiet;
  }
  const FlatFunction run = [&](Tensors own) { return run_keeping(*l, own); };
  return as_equation(*l, run, run, x, rule);
}

// --- the loop run backward: (x…, what it kept…, cotangents…) → cotangents… -----------------------

/// The loop with tangents, run backward.
struct Second {
  std::vector<Tensor> tangents;              ///< of the carries
  std::vector<Tensor> by_value, by_tangent;  ///< cotangents of the operands
};
struct SecondCall {
  const ReversedLoop& l;
  Tensors x, t;  ///< the operands and their tangents
  /// what the loop kept, and the tangents of that; may be missing
  Tensors kept, kept_t;
  Flags want_value, want_tangent;
  std::vector<Tensor> of_values, of_tangents;  ///< cotangents of the carries
};
Second run_second(const SecondCall& c) {
  const std::size_t n = c.l.carries();
  const TangentForm form = with_tangents(c.l.equation, c.x, c.t);
  Equation e = c.l.equation;
  e.params = form.params;
  Flags wanted(form.operands.size());
  const auto want = [&](const Flags& flags, const Vec<int>& places) {
    for (std::size_t i = 0; i < flags.size(); ++i)
      if (flags[i] && places[i] >= 0) wanted[places[i]] = true;
  };
  want(c.want_value, form.value_at);
  want(c.want_tangent, form.tangent_at);
  bool known = !c.kept.empty();
  for (std::size_t i = 0; i < n; ++i)
    known = known && (form.result_tangent_at[i] < 0 || c.kept_t[i].defined());
  const LoopRef l = loop_of(e, form.operands, wanted, known ? c.l.slots : 0);
  const std::size_t carries = l->carries();

  Second s;
  std::vector<Tensor> saved = form.operands;
  if (known) {
    std::vector<Tensor> kept(carries);
    for (std::size_t i = 0; i < n; ++i) {
      kept[form.result_at[i]] = c.kept[i];
      if (form.result_tangent_at[i] >= 0) kept[form.result_tangent_at[i]] = c.kept_t[i];
    }
    append(saved, kept);
    append(saved, c.kept.subspan(n));
  } else {
    const std::vector<Tensor> made = keeping(l, form.operands);
    for (int i : form.result_tangent_at) s.tangents.push_back(i < 0 ? Tensor() : made[i]);
    append(saved, Tensors(made).subspan(carries));
  }
  std::vector<Tensor> cts(carries);
  for (std::size_t i = 0; i < n; ++i) {
    if (!c.of_values.empty()) cts[form.result_at[i]] = c.of_values[i];
    if (form.result_tangent_at[i] >= 0 && !c.of_tangents.empty())
      cts[form.result_tangent_at[i]] = c.of_tangents[i];
  }
  std::vector<Tensor> pulled(form.operands.size());
  if (any(wanted)) pulled = pulled_back(l, std::move(saved), cts);
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    s.by_value.push_back(pulled[form.value_at[i]]);
    s.by_tangent.push_back(form.tangent_at[i] < 0 ? Tensor() : pulled[form.tangent_at[i]]);
  }
  return s;
}

/// The operands of the equation, or their tangents. `kept` comes with iterations and stride, and
/// may be missing.
struct LoopParts {
  Tensors x, kept, cts;
};
LoopParts parts_of(const ReversedLoop& l, Tensors given) {
  const std::size_t m = l.operands.size(), kept = l.carries() + 3;
  return {given.first(m), given.subspan(m, kept), given.subspan(m + kept)};
}
/// What stands for the varying carries, placed among all of them.
std::vector<Tensor> among_carries(const ReversedLoop& l, Tensors varying) {
  std::vector<Tensor> all(l.carries());
  for (std::size_t k = 0; k < varying.size(); ++k) all[l.varying[k]] = varying[k];
  return all;
}
/// What stands for the results, placed among all operands.
std::vector<Tensor> among_operands(const ReversedLoop& l, Tensors results) {
  std::vector<Tensor> all(l.operands.size());
  std::size_t next = 0;
  for (std::size_t i : l.varying) all[i] = results[next++];
  for (std::size_t i : l.shared_operands) all[i] = results[next++];
  return all;
}
/// Of all operands, those that the equation has results for.
std::vector<Tensor> results_of(const ReversedLoop& l, Tensors operands) {
  std::vector<Tensor> all;
  for (std::size_t i : l.varying) all.push_back(operands[i]);
  for (std::size_t i : l.shared_operands) all.push_back(operands[i]);
  return all;
}

/// Tangents of the results, and where it costs nothing the results.
std::vector<Tensor> tangents_of_pull(const LoopRef& l, const LoopParts& x, const LoopParts& t,
                                     std::vector<Tensor>* results) {
  const std::vector<Tensor> cts_t = among_carries(*l, t.cts);
  if (!any_defined(t.x)) {
    if (!any_defined(t.cts))
      return std::vector<Tensor>(l->varying.size() + l->shared_operands.size());
    std::vector<Tensor> saved = list(x.x);
    if (x.kept.empty())
      append(saved, Tensors(keeping(quiet_loop(l, x.x), x.x)).subspan(l->carries()));
    else append(saved, x.kept);
    return results_of(*l, pulled_back(l, std::move(saved), cts_t));
  }
  SecondCall second{*l, x.x, t.x, x.kept, t.kept, l->operands, {}, cts_t, among_carries(*l, x.cts)};
  Flags given;
  for (const Tensor& tangent : t.x) given.push_back(tangent.defined());
  given = differentiable().loop_operands(l->equation, std::move(given));
  bool all = true;
  for (std::size_t i = 0; i < given.size(); ++i) all = all && (given[i] || !l->operands[i]);
  if (results && all) second.want_tangent = l->operands;
  const Second s = run_second(second);
  if (!second.want_tangent.empty()) *results = results_of(*l, s.by_tangent);
  return results_of(*l, s.by_value);
}

std::vector<Tensor> backward_equation(const LoopRef& l, Tensors given);

std::shared_ptr<const CustomRule> backward_rule(const LoopRef& l) {
  auto own = std::make_shared<OwnDerivative>();
  const std::size_t m = l->operands.size(), n = l->carries();
  own->first_linear = m + n + 3;
  own->forward = [l](Tensors given, Tensors t) {
    std::vector<Tensor> results;
    const std::vector<Tensor> tangents =
        tangents_of_pull(l, parts_of(*l, given), parts_of(*l, t), &results);
    if (results.empty()) results = backward_equation(l, given);
    append(results, tangents);
    return results;
  };
  // What the loop kept is no residual: it is kept anew, with tangents.
  own->linearize = [l, m, n](Tensors given, const Vec<bool>& wanted) {
    const LoopParts parts = parts_of(*l, given);
    Linearization made;
    made.results = backward_equation(l, given);
    made.tangents = made.results.size();
    made.residuals = list(parts.x);
    append(made.residuals, parts.cts);
    made.push = [l, m](Tensors saved, Tensors t) {
      return tangents_of_pull(l, {saved.first(m), {}, saved.subspan(m)}, parts_of(*l, t), nullptr);
    };
    made.pull = [l, m, n, wanted](Tensors saved, Tensors cts) {
      const std::vector<Tensor> along = among_operands(*l, cts);
      std::vector<Tensor> all(wanted.size());
      if (!any_defined(along)) return all;
      const Flags by_x(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(m));
      const Second s = run_second(
          {*l, saved.first(m), along, {}, {}, by_x, {}, {}, among_carries(*l, saved.subspan(m))});
      for (std::size_t i = 0; i < m; ++i) all[i] = s.by_value[i];
      for (std::size_t k = 0; k < l->varying.size(); ++k)
        if (wanted[m + n + 3 + k]) all[m + n + 3 + k] = s.tangents[l->varying[k]];
      return all;
    };
    return made;
  };
  own->transpose = [l, m, n](Tensors x, Tensors cts) {
    std::vector<Tensor> all(x.size()), results, tangents;
    forward(l->equation, x.first(m), among_operands(*l, cts), results, tangents);
    for (std::size_t k = 0; k < l->varying.size(); ++k)
      all[m + n + 3 + k] = tangents[l->varying[k]];
    return all;
  };
  return rule_of(std::move(own));
}

std::vector<Tensor> backward_equation(const LoopRef& l, Tensors given) {
  // What the equation before has kept depends on the operands only by the rules of both. Loops for
  // themselves need it from loops.
  const FlatFunction open = [&](Tensors own) {
    const LoopParts parts = parts_of(*l, own);
    std::vector<Tensor> all = list(parts.x);
    append(all, Tensors(run_keeping(*quiet_loop(l, parts.x), parts.x)).subspan(l->carries()));
    append(all, parts.cts);
    return run_back(*l, all);
  };
  return as_equation(
      *l, [&](Tensors own) { return run_back(*l, own); }, open, given, backward_rule(l));
}

std::vector<Tensor> pulled_back(const LoopRef& loop, std::vector<Tensor> saved, Tensors cts) {
  const LoopRef l = reached_from(loop, cts);
  if (l->varying.empty()) return std::vector<Tensor>(l->operands.size());
  for (std::size_t i : l->varying) saved.push_back(or_zeros(cts[i], aval_of(saved[i])));
  return among_operands(*l, backward_equation(l, saved));
}

}  // namespace while_rules

ControlLinear linearize_while(const Equation& e, std::span<const Tensor> x, const Flags& wanted) {
  using namespace while_rules;
  const LoopRef l = loop_of(e, x, wanted);
  ControlLinear c = linearized(
      l, wanted, x, inside_scan() ? emitted(Op::while_, e.params, x, e.where) : keeping(l, x));
  c.results.resize(l->carries());
  return c;
}

}  // namespace vt::detail::control_linear
