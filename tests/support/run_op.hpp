// Running one primitive op on host values through the interpreter alone: no laziness, no
// simplifier, no compiler in between.
#pragma once

#include <utility>
#include <vector>

#include "property.hpp"
#include "src/trace/ir/graph.hpp"
#include "src/trace/record/node.hpp"

namespace vt_test {

using vt::detail::Op;
using vt::detail::ParamsRef;

/// A Graph of one equation on inputs like `operands`, its result shapes by the shape rules.
inline vt::detail::GraphBody graph_of(Op op, const ParamsRef& params,
                                      const std::vector<vt::Tensor>& operands) {
  vt::detail::GraphBody graph;
  vt::detail::Equation equation;
  equation.op = op;
  equation.params = params;
  equation.where = vt::CallSite{"/user/proto.cpp", 41};
  for (const vt::Tensor& t : operands)
    graph.inputs.push_back(graph.fresh(vt::detail::Aval(t.dtype(), t.shape())));
  std::vector<const vt::detail::Aval*> avals;
  for (vt::detail::Var v : graph.inputs) {
    equation.inputs.push_back(v);
    avals.push_back(&graph.aval(v));
  }
  const auto results = vt::detail::infer(op, params, avals, equation.where);
  for (const auto& aval : results) {
    const vt::detail::Var v = graph.fresh(aval);
    equation.outputs.push_back(v);
    graph.outputs.push_back(v);
  }
  graph.equations.push_back(std::move(equation));
  return graph;
}

inline std::vector<vt::Tensor> run_graph_alone(const vt::detail::GraphBody& graph,
                                               const std::vector<vt::Tensor>& operands) {
  vt::Vec<vt::detail::BufferRef> inputs;
  for (const vt::Tensor& t : operands) inputs.push_back(vt::detail::value_of(t, {}));
  const auto values = vt::detail::interpret(graph, inputs);
  std::vector<vt::Tensor> results;
  for (std::size_t i = 0; i < values.size(); ++i)
    results.push_back(vt::detail::from_buffer(values[i], graph.aval(graph.outputs[i])));
  return results;
}

inline std::vector<vt::Tensor> run_op_all(Op op, const ParamsRef& params,
                                          const std::vector<vt::Tensor>& operands) {
  return run_graph_alone(graph_of(op, params, operands), operands);
}
inline vt::Tensor run_op(Op op, const ParamsRef& params, const std::vector<vt::Tensor>& operands) {
  return run_op_all(op, params, operands)[0];
}
inline vt::Tensor run_op(Op op, const std::vector<vt::Tensor>& operands) {
  return run_op(op, ParamsRef{}, operands);
}
/// With parameters as a plain struct.
template <class P>
  requires requires(P p) { vt::detail::make_params(p); }
vt::Tensor run_op(Op op, P params, const std::vector<vt::Tensor>& operands) {
  return run_op(op, vt::detail::make_params(std::move(params)), operands);
}

}  // namespace vt_test
