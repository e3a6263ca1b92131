// Collectives: finding the equations that work over a named axis.
#pragma once

#include "graph.hpp"

namespace vt::detail {

/// Can an equation of this op work over axes? Others need not be asked.
constexpr bool has_axes(Op op) {
  return is_collective(op) || family_of(op) == Family::structure || op == Op::reduce;
}
/// Does the equation, or an equation of the Graph, work over `axis`?
bool works_over(Op, const ParamsRef&, const NamedAxis& axis);
bool works_over(const GraphBody&, const NamedAxis& axis);

}  // namespace vt::detail
