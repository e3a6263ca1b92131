// Linearization of a Graph: its results and residuals at a point, and its derivative there as a
// linear Graph.
#pragma once

#include <span>
#include <vector>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "../../trace/record/node.hpp"

namespace vt::detail {

/// A Graph at a point. The derivative maps tangents of the wanted inputs to tangents of the
/// outputs.
struct LinearPart {
  std::vector<Tensor> outputs;
  /// inputs: the tangents, then the residuals. Only push_linear and pull_linear may run it.
  GraphBody graph;
  std::vector<Tensor> residuals;
  Vec<int> tangent_of;  ///< per output: which output of `graph`, −1 where the tangent is zero
  Vec<Aval> wanted;     ///< the wanted inputs
};

/// Emits the primal equations into the current scope. `wanted`: one per Graph input; inputs beyond
/// its end are not wanted.
LinearPart linearize_graph(const GraphBody& graph, std::span<const Tensor> primals,
                           const Vec<bool>& wanted);

/// Throws unless all arguments wanted and the result are complex.
void need_holomorphic(const GradCall&, const LinearPart&, const Aval& result);
/// Records `f` and linearizes it at the call's arguments. Throws if a wanted one has no derivative.
LinearPart linearize_call(const FlatFunction& f, const GradCall& call);

/// Undefined Tensors are zeros, in arguments and results.
std::vector<Tensor> push_linear(const LinearPart&, std::span<const Tensor> tangents);
/// `sums`: see transpose_graph.
std::vector<Tensor> pull_linear(const LinearPart&, std::span<const Tensor> cotangents,
                                std::span<const Tensor> sums = {});

}  // namespace vt::detail
