// Carries, operands and results of branches and loops that nobody needs.
#include <vt/detail/small_vec.hpp>

#include "../ir/sub_graph.hpp"
#include "control.hpp"

namespace vt::detail::simplification {

/// Carries that no result, no other carry and no condition needs become operands of the rest, whose
/// last use goes with the result.
bool ControlRewrite::drop_dead() {
  bool dropped = false;
  if (!is_loop()) {
    // Results are dropped as they are read; only the first time there is something to say.
    return !changed_ && any_of(results_, [](const Result& r) { return !r.wanted; });
  }
  Vec<bool> live(results_.size());
  for (std::size_t i = 0; i < results_.size(); ++i) live[i] = results_[i].is_open();
  Vec<bool> in_condition;
  Liveness& liveness = pass_.memo_.liveness;
  if (op_ == Op::while_) {
    in_condition.resize(bodies_[0].get().avals.size());
    in_condition[bodies_[0].get().outputs[0]] = true;
    liveness.propagate(bodies_[0].get(), in_condition);
  }
  const GraphBody& g = step_body();
  for (bool grew = true; grew;) {
    grew = false;
    Vec<bool> needed(g.avals.size());
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (live[i]) needed[results_[i].inner[0]] = true;
    liveness.propagate(g, needed);
    for (std::size_t i = 0; i < carries_; ++i) {
      if (!is_carry(i) || live[i]) continue;
      const Operand& o = operands_[i];
      if (!needed[o.inner[step()]] && (in_condition.empty() || !in_condition[o.inner[0]])) continue;
      live[i] = grew = true;
    }
  }
  for (std::size_t i = 0; i < carries_; ++i) {
    if (!is_carry(i) || live[i]) continue;
    operands_[i].role = Role::rest;
    dropped = true;
  }
  if (!changed_)
    for (std::size_t i = carries_; i < results_.size(); ++i)
      dropped = dropped || !results_[i].wanted;
  return dropped;
}

/// Operands that no body uses.
bool ControlRewrite::drop_operands() {
  bool dropped = false;
  Vec<Vec<int>> reads;
  for (const Body& b : bodies_) reads.push_back(reads_of(b.get()));
  for (Operand& o : operands_) {
    if (o.role != Role::sequence && o.role != Role::rest) continue;
    bool any = false;
    for (std::size_t b = 0; b < bodies_.size(); ++b) any = any || reads[b][o.inner[b]] > 0;
    if (any) continue;
    o.role = Role::gone;
    dropped = true;
  }
  return dropped;
}

}  // namespace vt::detail::simplification
