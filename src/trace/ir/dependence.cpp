// Dependence: which results of a Graph depend on which of its inputs,
// through loops to their fixpoint.
#include "dependence.hpp"

#include <algorithm>

#include "../base/stack.hpp"
#include "collectives.hpp"
#include "recursive_function.hpp"

namespace vt::detail {

namespace dependence_parts {
inline bool any(const Dependence::Flags& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
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
  const GraphBody* body =
      e.op == Op::while_ ? e.as<WhileParams>().body.get() : e.as<ScanParams>().body.get();
  const std::size_t carries =
      e.op == Op::while_ ? e.as<WhileParams>().carries : e.as<ScanParams>().carries;
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

}  // namespace vt::detail
