// Replaces equations that only run a sub-graph (calls, checkpoint, custom rules) by its equations.

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/sub_graph.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace inlining {

bool runs_body(Op op) {
  return op == Op::call || op == Op::checkpoint || op == Op::custom_jvp || op == Op::custom_vjp ||
         op == Op::custom_vmap;
}

void copy_flat(const GraphBody& from, Copier& copy, GraphBody& to) {
  for (const Equation& e : from.equations) {
    if (!runs_body(e.op)) {
      copy.add(e);
      continue;
    }
    const GraphBody& body = *e.as<CallParams>().body;
    Copier inner(body.avals, to);
    inner.bind(body.inputs, copy.all(e.inputs));
    copy_flat(body, inner, to);
    copy.bind(e.outputs, inner.all(body.outputs));
  }
}

}  // namespace inlining

GraphBody inline_calls(GraphBody graph) {
  if (none_of(graph.equations, [](const Equation& e) { return inlining::runs_body(e.op); }))
    return graph;
  GraphBody flat;
  Copier copy(graph.avals, flat);
  flat.inputs = copy.all(graph.inputs);
  inlining::copy_flat(graph, copy, flat);
  flat.outputs = copy.all(graph.outputs);
  return flat;
}

}  // namespace vt::detail
