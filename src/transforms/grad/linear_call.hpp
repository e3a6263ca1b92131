// Linear calls: linear equations known only by how they are applied and how they are transposed.
// linearize leaves them for custom_vjp and checkpoint, whose transposes run user code or compute
// values again, and must not do so before they are asked to.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

struct LinearCall {
  std::string name;
  LinearRule push;  ///< tangents of the operands → tangents of the results
  LinearRule pull;  ///< cotangents of the results → cotangents of the operands
  std::vector<Tensor> residuals;
};

/// Records the call on those of `tangents` that are defined. `results`: what the tangents of the
/// results look like. Results of integer dtype get an undefined tangent.
std::vector<Tensor> emit_linear_call(LinearCall, std::span<const Tensor> tangents,
                                     std::span<const Aval> results, CallSite);

/// Is this an equation that emit_linear_call made? It is an Op::call with a rule.
bool is_linear_call(const Equation&);
/// Runs it: operands are the tangents (undefined: zero), then the residuals.
std::vector<Tensor> push_linear_call(const Equation&, std::span<const Tensor> operands);
/// Its transpose: cotangents of the equation's results → cotangents of its tangent operands.
/// `operands`: only the residuals are read.
std::vector<Tensor> pull_linear_call(const Equation&, std::span<const Tensor> operands,
                                     std::span<const Tensor> cotangents);

}  // namespace vt::detail
