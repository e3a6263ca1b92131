// Liveness: which Vars of a Graph some of its results need, into sub-graphs and through loops to
// their fixpoint.
#include "liveness.hpp"

#include <algorithm>

#include "../base/stack.hpp"
#include "effects.hpp"

namespace vt::detail {

namespace liveness_parts {
/// Has the simplifier dropped what nobody needs?
inline bool is_simple(const GraphBody& g) {
  return g.facts.simple_to_run.load(std::memory_order_relaxed) ||
         g.facts.simple_to_transform.load(std::memory_order_relaxed);
}
inline bool any(const Liveness::Flags& flags) {
  return std::find(flags.begin(), flags.end(), true) != flags.end();
}
inline void join(Liveness::Flags& flags, std::size_t first, const Liveness::Flags& more) {
  for (std::size_t i = 0; i < more.size(); ++i)
    if (more[i]) flags[first + i] = true;
}
}  // namespace liveness_parts

void Liveness::propagate(const GraphBody& graph, Flags& live) {
  Flags results;
  for (auto e = graph.equations.rbegin(); e != graph.equations.rend(); ++e) {
    const bool stays = has_effect(*e);
    results.clear();
    for (Var v : e->outputs) results.push_back(live[v]);
    if (!stays && !liveness_parts::any(results)) continue;
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
  using namespace liveness_parts;
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
      const GraphRef& body = is_while ? e.as<WhileParams>().body : e.as<ScanParams>().body;
      const std::size_t carries =
          is_while ? e.as<WhileParams>().carries : e.as<ScanParams>().carries;
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
