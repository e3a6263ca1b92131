// Liveness: which Vars of a Graph some of its results need, into sub-graphs and through loops to
// their fixpoint.
#pragma once

#include <memory>

#include <vt/detail/small_vec.hpp>

#include "effects.hpp"
#include "flags_of_graph.hpp"

namespace vt::detail {

/// Remembers its answers for sub-graphs (and keeps those alive), so that asking at every level of
/// nested loops stays linear.
class Liveness {
 public:
  using Flags = Vec<bool>;
  /// Propagates `live`, one flag per Var, from results to what they are made of.
  void propagate(const GraphBody&, Flags& live);
  /// One flag per input of the Graph, given one per output.
  Flags inputs(const GraphRef&, const Flags& outputs);

 private:
  Flags operands(const Equation&, const Flags& results);

  struct Answer {
    GraphRef graph;
    Flags inputs;
  };
  HashMap<FlagsOfGraph, Answer> known_;
};

}  // namespace vt::detail
