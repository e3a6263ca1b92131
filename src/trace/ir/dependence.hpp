// Dependence: which results of a Graph depend on which of its inputs. Liveness: which Vars some of
// its results need. Both go into sub-graphs, and through loops to their fixpoint.
#pragma once

#include <cstddef>

#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "graph.hpp"

namespace vt::detail {

/// A sub-graph with one flag per input or output of it: what answers are remembered by.
struct FlagsOfGraph {
  const GraphBody* graph;
  Vec<bool> flags;
  friend bool operator==(const FlagsOfGraph& a, const FlagsOfGraph& b) {
    return a.graph == b.graph && a.flags == b.flags;
  }
  friend std::size_t key_hash(const FlagsOfGraph& key) {
    std::size_t h = detail::key_hash(static_cast<const void*>(key.graph));
    for (bool flag : key.flags) h = h * 31 + (flag ? 2 : 1);
    return h;
  }
};

/// Answers for one kind of dependence; remembers them, so that asking at every level of nested
/// loops stays linear.
class Dependence {
 public:
  using Flags = Vec<bool>;
  /// Does a dependent operand make this result of the equation dependent? Null: always.
  using Passes = bool (*)(const Equation&, const Aval& result);
  explicit Dependence(Passes passes = nullptr) : passes_(passes) {}
  /// On the lane of `axis`: collectives over it take dependence away, or make it.
  explicit Dependence(const NamedAxis* axis) : axis_(axis) {}

  /// One flag per output of `graph`, given one per input.
  Flags outputs(const GraphBody& graph, const Flags& inputs);
  /// One flag per result of an equation of `graph`, given one per operand.
  Flags results(const GraphBody& graph, const Equation& e, const Flags& operands);
  /// The operands of a while or scan once the loop has propagated what its carries depend on.
  Flags loop_operands(const Equation&, Flags operands);
  /// Does the condition of a while depend, given loop_operands?
  bool condition(const WhileParams& p, const Flags& operands) {
    return outputs(*p.condition, operands)[0];
  }

 private:
  Passes passes_ = nullptr;
  const NamedAxis* axis_ = nullptr;
  Flags of_recursion(const RecursiveFunction&, const Flags& operands);

  HashMap<FlagsOfGraph, Flags> known_;
  /// Of recursive functions that are being looked at: what is known of their results so far.
  struct Assumption {
    const RecursiveFunction* function;
    Flags operands, results;
  };
  Vec<Assumption> assumed_;
};

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
