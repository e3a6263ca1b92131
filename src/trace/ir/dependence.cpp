// Dependence: which results of a Graph depend on which of its inputs. Liveness: which Vars some of
// its results need. Both go into sub-graphs, and through loops to their fixpoint.
#include "dependence.hpp"

#include <algorithm>

#include "../base/stack.hpp"
#include "collectives.hpp"
#include "recursive_function.hpp"

namespace vt::detail {

namespace dependence_parts {
inline bool any(const Vec<bool>& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}
/// Has the simplifier dropped what nobody needs?
inline bool is_simple(const GraphBody& g) {
  return g.facts.simple_to_run.load(std::memory_order_relaxed) ||
         g.facts.simple_to_transform.load(std::memory_order_relaxed);
}
inline void join(Liveness::Flags& flags, std::size_t first, const Liveness::Flags& more) {
  for (std::size_t i = 0; i < more.size(); ++i)
    if (more[i]) flags[first + i] = true;
}
}  // namespace dependence_parts

Dependence::Flags Dependence::outputs(const GraphBody& graph, const Flags& inputs) {
  FlagsOfGraph key{&graph, inputs};
  if (const auto found = known_.find(key); found != known_.end()) return found->second;
  need_stack({});
  Flags flags(graph.avals.size()), operands, result;
  for (std::size_t i = 0; i < graph.inputs.size(); ++i) flags[graph.inputs[i]] = inputs[i];
  for (const Equation& e : graph.equations) {
    operands.clear();
    for (Var v : e.inputs) operands.push_back(flags[v]);
    if (!dependence_parts::any(operands) && !(axis_ && works_over(e.op, e.params, *axis_)))
      continue;
    const Flags made = results(graph, e, operands);
    for (std::size_t i = 0; i < made.size(); ++i) flags[e.outputs[i]] = made[i];
  }
  for (Var v : graph.outputs) result.push_back(flags[v]);
  return known_.emplace(std::move(key), std::move(result)).entry->second;
}

Dependence::Flags Dependence::loop_operands(const Equation& e, Flags operands) {
  const GraphRef body = loop_body(e);
  const std::size_t carries = carries_of(e);
  for (bool grew = true; grew;) {
    grew = false;
    const Flags& next = outputs(*body, operands);
    // A loop that stops at different times for different values hands on different carries,
    // whatever they are made of.
    const bool all = !passes_ && e.op == Op::while_ && condition(e.as<WhileParams>(), operands);
    for (std::size_t i = 0; i < carries; ++i) {
      if (operands[i] || !(next[i] || all)) continue;
      operands[i] = grew = true;
    }
  }
  return operands;
}

// A fixpoint, from nothing on: what the results depend on if those of the calls inside depend on
// that.
Dependence::Flags Dependence::of_recursion(const RecursiveFunction& f, const Flags& operands) {
  for (const Assumption& a : assumed_)
    if (a.function == &f && a.operands == operands) return a.results;
  if (!f.body) return Flags(f.outputs.size(), true);
  Dependence inner = *this;
  inner.assumed_.push_back({&f, operands, Flags(f.outputs.size(), false)});
  for (;;) {
    inner.known_.clear();
    Flags made = inner.outputs(*f.body, operands);
    Flags& before = inner.assumed_.back().results;
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = made[i] || before[i];
    if (made == before) return made;
    before = std::move(made);
  }
}

Dependence::Flags Dependence::results(const GraphBody& graph, const Equation& e,
                                      const Flags& operands) {
  Flags made(e.outputs.size(), true);
  switch (e.op) {
    case Op::call:
    case Op::checkpoint:
      if (!e.as<CallParams>().rule) made = outputs(*e.as<CallParams>().body, operands);
      break;
    case Op::custom_vjp:
      // Such a derivative may go by other ways than the body does.
      if (!passes_ && e.as<CallParams>().rule->own)
        made = outputs(*e.as<CallParams>().body, operands);
      break;
    case Op::recursive_call:
      made = of_recursion(*e.as<RecursionParams>().function, operands);
      break;
    case Op::cond: {
      if (!passes_ && operands[0]) break;
      const Flags inner(operands.begin() + 1, operands.end());
      made.assign(made.size(), false);
      for (const GraphRef& branch : e.as<CondParams>().branches) {
        const Flags& of_branch = outputs(*branch, inner);
        for (std::size_t i = 0; i < made.size(); ++i) made[i] = made[i] || of_branch[i];
      }
      break;
    }
    case Op::batched_call: made = outputs(*e.as<BatchedCallParams>().body, operands); break;
    case Op::fused_region: made = outputs(*e.as<RegionParams>().body, operands); break;
    case Op::while_: {
      const Flags looped = loop_operands(e, operands);
      std::copy_n(looped.begin(), made.size(), made.begin());
      break;
    }
    case Op::scan: {
      const Flags looped = loop_operands(e, operands);
      made = outputs(*e.as<ScanParams>().body, looped);
      std::copy_n(looped.begin(), static_cast<std::size_t>(e.as<ScanParams>().carries),
                  made.begin());
      break;
    }
    case Op::psum:
    case Op::pmax:
    case Op::pmin:
    case Op::all_gather: made[0] = e.as<CollectiveParams>().axis.get() != axis_; break;
    default: break;
  }
  if (passes_)
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = made[i] && passes_(e, graph.aval(e.outputs[i]));
  return made;
}

void Liveness::propagate(const GraphBody& graph, Flags& live) {
  Flags results;
  for (auto e = graph.equations.rbegin(); e != graph.equations.rend(); ++e) {
    const bool stays = keeps_order(*e);
    results.clear();
    for (Var v : e->outputs) results.push_back(live[v]);
    if (!stays && !dependence_parts::any(results)) continue;
    if (family_of(e->op) != Family::structure) {
      for (Var v : e->inputs) live[v] = true;
      continue;
    }
    const Flags needed = operands(*e, results);
    for (std::size_t i = 0; i < needed.size(); ++i)
      if (needed[i]) live[e->inputs[i]] = true;
  }
}

Liveness::Flags Liveness::inputs(const GraphRef& graph, const Flags& outputs) {
  need_stack({});
  FlagsOfGraph key{graph.get(), outputs};
  if (const auto found = known_.find(key); found != known_.end()) return found->second.inputs;
  Flags live(graph->avals.size()), result;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i]) live[graph->outputs[i]] = true;
  propagate(*graph, live);
  for (Var v : graph->inputs) result.push_back(live[v]);
  return known_.emplace(std::move(key), Answer{graph, std::move(result)}).entry->second.inputs;
}

Liveness::Flags Liveness::operands(const Equation& e, const Flags& results) {
  using namespace dependence_parts;
  Flags needed(e.inputs.size(), true);
  // A simple body reads all of its inputs. Going into it would go into all bodies inside, at each
  // level of nesting anew.
  const bool all = std::find(results.begin(), results.end(), false) == results.end();
  if (all && all_of(bodies_of(e.params), [](const GraphRef& body) { return is_simple(*body); }))
    return needed;
  switch (e.op) {
    case Op::call:
    case Op::checkpoint:
      if (!e.as<CallParams>().rule) needed = inputs(e.as<CallParams>().body, results);
      break;
    case Op::cond:
      std::fill(needed.begin() + 1, needed.end(), false);
      for (const GraphRef& branch : e.as<CondParams>().branches)
        join(needed, 1, inputs(branch, results));
      break;
    case Op::batched_call: needed = inputs(e.as<BatchedCallParams>().body, results); break;
    case Op::fused_region: needed = inputs(e.as<RegionParams>().body, results); break;
    case Op::while_:
    case Op::scan: {
      const bool is_while = e.op == Op::while_;
      const GraphRef body = loop_body(e);
      const std::size_t carries = carries_of(e);
      Flags live = results;
      needed.assign(needed.size(), false);
      if (is_while) join(needed, 0, inputs(e.as<WhileParams>().condition, {true}));
      for (bool grew = true; grew;) {
        grew = false;
        for (std::size_t i = 0; i < carries; ++i) {
          if (needed[i] && !live[i]) live[i] = grew = true;
        }
        const Flags before = needed;
        join(needed, 0, inputs(body, live));
        grew = grew || needed != before;
      }
      // A carry whose last value is wanted begins somewhere, even if no iteration reads it.
      for (std::size_t i = 0; i < carries; ++i) needed[i] = needed[i] || live[i];
      break;
    }
    default: break;
  }
  return needed;
}

}  // namespace vt::detail
