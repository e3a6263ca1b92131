// Collectives: finding the equations that work over a named axis, and the axes of meshes.
#pragma once

#include <string_view>

#include "effects.hpp"
#include "graph.hpp"

namespace vt::detail {

/// Can an equation of this op work over axes? Others need not be asked.
constexpr bool has_axes(Op op) {
  return is_collective(op) || family_of(op) == Family::structure || op == Op::reduce;
}
/// Does the equation, or an equation of the Graph, work over `axis`?
bool works_over(Op, const ParamsRef&, const NamedAxis& axis);
bool works_over(const GraphBody&, const NamedAxis& axis);

namespace collective_search {
bool exchanges(Op, const ParamsRef&);
}
/// The axis of that name in meshes whose ranks lie so: one object for equal ones, so that a Graph
/// is the same when it is recorded again.
AxisRef mesh_axis(std::string_view name, std::int64_t size, std::int64_t stride,
                  std::int64_t ranks);

/// Does it exchange data with other processes, itself or in a sub-graph? All processes must do this
/// in the same order: no pass moves it into or out of a branch or loop, and programs run it in the
/// order of the Graph.
inline bool communicates(Op op, const ParamsRef& params) {
  return has_axes(op) && collective_search::exchanges(op, params);
}
inline bool communicates(const Equation& e) { return communicates(e.op, e.params); }
/// Asks each sub-graph once.
bool communicates(const GraphBody&);
/// Of a Graph that communicates: the first collective in it, and how many ranks its mesh has.
const Equation& first_exchange(const GraphBody&);
std::int64_t ranks_of(const GraphBody&);

/// Does it have an effect, or communicate? No pass drops, merges, repeats or moves it: what is
/// known of values differs between processes.
inline bool keeps_order(Op op, const ParamsRef& params) {
  return has_effect(op, params) || communicates(op, params);
}
inline bool keeps_order(const Equation& e) { return has_effect(e) || communicates(e); }
inline bool keeps_order(const GraphBody& g) { return has_effects(g) || communicates(g); }

/// What communicates, in its order: parameters.
Vec<const Params*> exchanges_of(const GraphBody&);
/// What a pass makes of the Graph if its exchanges are in the same order then; else the Graph.
template <class Pass>
GraphBody with_same_exchanges(GraphBody g, const Pass& pass) {
  if (!communicates(g)) return pass(std::move(g));
  GraphBody made = pass(g);
  return exchanges_of(made) == exchanges_of(g) ? made : g;
}

}  // namespace vt::detail
