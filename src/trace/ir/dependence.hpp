// Dependence: which results of a Graph depend on which of its inputs,
// through loops to their fixpoint.
#pragma once

#include <cstddef>

#include <vt/detail/small_vec.hpp>

#include "flags_of_graph.hpp"

namespace vt::detail {

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

}  // namespace vt::detail
