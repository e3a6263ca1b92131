// Liveness: which Vars of a Graph some of its results need, into sub-graphs and through loops to their fixpoint.
#pragma once

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "graph.hpp"

namespace vt::detail {

/// Ops that do something besides their results. There is none yet; those that will (print, check, variables) are named here and
/// nowhere else.
constexpr bool has_effect(Op) { return false; }
consteval bool any_op_has_effect() {
  for (int i = 0; i < op_count; ++i)
    if (has_effect(static_cast<Op>(i))) return true;
  return false;
}
/// Does an equation stay even if nobody uses its results, because it or one in its sub-graphs has an effect?
inline bool has_effect(Op op, const ParamsRef& params) {
  if constexpr (any_op_has_effect()) {
    if (has_effect(op)) return true;
    for (const GraphRef& body : bodies_of(params))
      for (const Equation& e : body->equations)
        if (has_effect(e.op, e.params)) return true;
  }
  return false;
}
inline bool has_effect(const Equation& e) { return has_effect(e.op, e.params); }

/// Remembers its answers for sub-graphs (and keeps those alive), so that asking at every level of nested loops stays linear.
class Liveness {
 public:
  using Flags = std::vector<bool>;
  /// Spreads `live`, one flag per Var, from results to what they are made of.
  void spread(const GraphBody&, Flags& live);
  /// One flag per input of the Graph, given one per output.
  const Flags& inputs(const GraphRef&, const Flags& outputs);

 private:
  Flags operands(const Equation&, const Flags& results);

  struct Answer {
    GraphRef graph;
    Flags inputs;
  };
  std::map<std::pair<const GraphBody*, Flags>, Answer> known_;
};

}  // namespace vt::detail
