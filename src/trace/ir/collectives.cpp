// Collectives: finding the equations that work over a named axis.
#include "collectives.hpp"

namespace vt::detail {

bool works_over(Op op, const ParamsRef& params, const NamedAxis& axis) {
  if (is_collective(op)) return params->as<CollectiveParams>().axis.get() == &axis;
  if (!has_axes(op)) return false;
  for (const GraphRef& body : bodies_of(params))
    if (works_over(*body, axis)) return true;
  return false;
}

bool works_over(const GraphBody& graph, const NamedAxis& axis) {
  return any_of(graph.equations,
                [&](const Equation& e) { return works_over(e.op, e.params, axis); });
}

}  // namespace vt::detail
