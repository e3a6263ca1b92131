// What equations of one lane compute: whether it pays that lanes wait for each other in front of
// them.
#include "lane_work.hpp"

#include <algorithm>
#include <cmath>

#include "../base/stack.hpp"

namespace vt::detail {

namespace lane_works {

// Of a value; see RegisterLimits.
constexpr std::int64_t most_in_registers = 32;

double elements(const GraphBody& g, Var v) { return static_cast<double>(g.aval(v).elements()); }

double extents(const GraphBody& g, Var v, const Axes& axes) {
  double n = 1;
  for (int axis : axes) n *= static_cast<double>(g.aval(v).shape[static_cast<std::size_t>(axis)]);
  return n;
}

double of_op(const GraphBody& g, const Equation& e) {
  double moved = 0;
  for (Var v : e.outputs) moved = std::max(moved, elements(g, v));
  if (e.inputs.empty()) return moved;
  const double in = elements(g, e.inputs[0]);
  switch (family_of(e.op)) {
    case Family::contract:
      if (e.op == Op::dot_general)
        return moved * extents(g, e.inputs[0], e.as<DotParams>().lhs_contract);
      return moved * extents(g, e.inputs[1], e.as<ConvParams>().rhs_window) *
             extents(g, e.inputs[1], e.as<ConvParams>().dot.rhs_contract);
    case Family::linalg: {
      const Shape& shape = g.aval(e.inputs[0]).shape;
      return std::max(moved, in) * static_cast<double>(shape.empty() ? 1 : shape.back());
    }
    case Family::spectral:
    case Family::order: return in * std::log2(in + 2);
    case Family::reduce: return std::max(moved, in);
    default: return moved;
  }
}

}  // namespace lane_works

double lane_work(const GraphBody& g, const Equation& e) {
  need_stack({});
  const Vec<GraphRef> bodies = e.op == Op::reduce ? Vec<GraphRef>() : bodies_of(e.params);
  if (bodies.empty()) return lane_works::of_op(g, e);
  double work = 0;
  for (const GraphRef& body : bodies)
    for (const Equation& inside : body->equations) work += lane_work(*body, inside);
  return work;
}

namespace lane_works {

Vec<GraphRef> bodies_inside(const Equation& e) {
  return e.op == Op::reduce ? Vec<GraphRef>() : bodies_of(e.params);
}
bool any_inside(const Equation& e, bool (*is)(const GraphBody&, const Equation&)) {
  need_stack({});
  return any_of(bodies_inside(e), [&](const GraphRef& body) {
    return any_of(body->equations, [&](const Equation& inside) { return is(*body, inside); });
  });
}
bool is_too_large(const GraphBody& g, const Equation& e) {
  return any_of(e.outputs, [&](Var v) { return g.aval(v).elements() > most_in_registers; }) ||
         any_inside(e, is_too_large);
}

}  // namespace lane_works

bool has_heavy_work(const GraphBody& g, const Equation& e) {
  if (e.op == Op::recursive_call) return true;
  return lane_works::bodies_inside(e).empty() ? lane_works::of_op(g, e) >= heavy_work
                                              : lane_works::any_inside(e, has_heavy_work);
}

bool parts_flow(const GraphBody& g, const Equation& e) {
  if (e.op == Op::recursive_call || e.op == Op::meeting) return true;
  if (lane_works::bodies_inside(e).empty()) return lane_works::of_op(g, e) >= heavy_work;
  return lane_works::any_inside(e, parts_flow) ||
         (is_control(e.op) && lane_works::is_too_large(g, e));
}

}  // namespace vt::detail
