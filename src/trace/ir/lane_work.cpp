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
  for (int axis : axes) n *= static_cast<double>(g.aval(v).shape[axis]);
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
    case Family::index:  // what is updated is written over its operand
      if (e.op == Op::dynamic_update_slice) return elements(g, e.inputs[1]);
      return is_scatter(e.op) ? elements(g, e.inputs[2]) : moved;
    default: return moved;
  }
}

Vec<GraphRef> bodies_inside(const Equation& e) {
  return e.op == Op::reduce ? Vec<GraphRef>() : bodies_of(e.params);
}

/// As many equations make a function that is called by name one for blocks to share.
constexpr double many_equations = 256;

}  // namespace lane_works

const LaneWork::Body& LaneWork::inside(const GraphRef& body) {
  if (const auto known = bodies_.find(body.get()); known != bodies_.end()) return known->second;
  need_stack({});
  Body sum;
  for (const Equation& e : body->equations) {
    sum.work += of(*body, e);
    sum.equations += 1 + equations_in(e);
    sum.is_heavy = sum.is_heavy || is_heavy(*body, e);
    sum.parts = sum.parts || parts_flow(*body, e);
    sum.is_large = sum.is_large || is_large(*body, e);
  }
  return bodies_.emplace(body.get(), sum).entry->second;
}
bool LaneWork::any(const Equation& e, bool Body::* flag) {
  return any_of(lane_works::bodies_inside(e),
                [&](const GraphRef& body) { return inside(body).*flag; });
}

double LaneWork::of(const GraphBody& g, const Equation& e) {
  const Vec<GraphRef> bodies = lane_works::bodies_inside(e);
  if (bodies.empty()) return lane_works::of_op(g, e);
  double work = 0;
  for (const GraphRef& body : bodies) work += inside(body).work;
  return lanes_of(e) ? work * static_cast<double>(lanes_of(e)->count) : work;
}
double LaneWork::equations_in(const Equation& e) {
  double count = 0;
  for (const GraphRef& body : lane_works::bodies_inside(e)) count += inside(body).equations;
  return count;
}
bool LaneWork::is_heavy(const GraphBody& g, const Equation& e) {
  if (e.op == Op::recursive_call) return true;
  return lane_works::bodies_inside(e).empty() ? lane_works::of_op(g, e) >= heavy_work
                                              : any(e, &Body::is_heavy);
}
bool LaneWork::is_large(const GraphBody& g, const Equation& e) {
  const auto no_registers_hold = [&](Var v) {
    return g.aval(v).elements() > lane_works::most_in_registers;
  };
  // Loops and functions may hand arrays on that only single elements are read of.
  const bool computes = lane_works::bodies_inside(e).empty() && family_of(e.op) != Family::index;
  return any_of(e.outputs, no_registers_hold) ||
         (computes && any_of(e.inputs, no_registers_hold)) || any(e, &Body::is_large);
}
bool LaneWork::parts_flow(const GraphBody& g, const Equation& e) {
  if (e.op == Op::recursive_call || e.op == Op::meeting) return true;
  if (lanes_of(e)) return false;
  if (lane_works::bodies_inside(e).empty()) return lane_works::of_op(g, e) >= heavy_work;
  if (e.op == Op::call && equations_in(e) > lane_works::many_equations) return true;
  return any(e, &Body::parts) || (is_control(e.op) && is_large(g, e));
}

}  // namespace vt::detail
