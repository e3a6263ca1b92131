// Replaces equations that only run a sub-graph (calls, checkpoint, custom rules) by its equations.

#include <vt/detail/small_vec.hpp>

#include "passes.hpp"

namespace vt::detail {

namespace inlining {

bool runs_body(Op op) {
  return op == Op::call || op == Op::checkpoint || op == Op::custom_jvp || op == Op::custom_vjp ||
         op == Op::custom_vmap;
}

void append(const GraphBody& from, Vec<Var>& names, GraphBody& to);

void append_equation(const GraphBody& from, const Equation& e, Vec<Var>& names, GraphBody& to) {
  if (runs_body(e.op)) {
    const GraphBody& body = *e.as<CallParams>().body;
    Vec<Var> inner(body.avals.size(), -1);
    for (std::size_t i = 0; i < body.inputs.size(); ++i) inner[body.inputs[i]] = names[e.inputs[i]];
    append(body, inner, to);
    for (std::size_t i = 0; i < e.outputs.size(); ++i) names[e.outputs[i]] = inner[body.outputs[i]];
    return;
  }
  Equation copy = e;
  for (Var& v : copy.inputs) v = names[v];
  for (Var& v : copy.outputs) {
    const Var fresh = to.fresh(from.aval(v));
    names[v] = fresh;
    v = fresh;
  }
  to.equations.push_back(std::move(copy));
}

void append(const GraphBody& from, Vec<Var>& names, GraphBody& to) {
  for (const Equation& e : from.equations) append_equation(from, e, names, to);
}

}  // namespace inlining

GraphBody inline_calls(GraphBody graph) {
  bool any = false;
  for (const Equation& e : graph.equations) any = any || inlining::runs_body(e.op);
  if (!any) return graph;
  GraphBody flat;
  Vec<Var> names(graph.avals.size(), -1);
  for (Var v : graph.inputs) {
    names[v] = flat.fresh(graph.aval(v));
    flat.inputs.push_back(names[v]);
  }
  inlining::append(graph, names, flat);
  for (Var v : graph.outputs) flat.outputs.push_back(names[v]);
  return flat;
}

}  // namespace vt::detail
