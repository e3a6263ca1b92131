// Residuals of branches and loops: which values forward keeps, and which backward computes again.
#pragma once

#include <span>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/graph.hpp"
#include "../../../trace/record/node.hpp"

namespace vt::detail::control_linear {

/// Where a residual of a derivative comes from when the derivative is applied. `index`: of the kept
/// ones, of the equation's operands (as its file counts them), of the derived ones.
struct Residual {
  enum class From : std::uint8_t { kept, sequence, operand, derived } from;
  std::size_t index;
};

/// Residuals that a few element-wise operations make of others (1 − t² beside t, s (1 − s) beside
/// s): cheaper to compute again than to write to memory and read back.
struct Derived {
  GraphBody graph;        ///< from the residuals that are kept, in order
  Vec<std::size_t> kept;  ///< of the candidates
  Vec<int> place;         ///< per candidate: its number among the derived ones, or −1
};
/// `candidates`: Vars of `body`.
Derived derive(const GraphBody& body, std::span<const Var> candidates);

inline bool same_value(const Tensor& a, const Tensor& b) {
  return node_of(a) == node_of(b) && output_of(a) == output_of(b);
}

}  // namespace vt::detail::control_linear
