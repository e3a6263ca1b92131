// The derivatives of cond, while and scan: forward, and as linear calls whose transposes run the
// loops backwards.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/dependence.hpp"
#include "../linear_call.hpp"

namespace vt::detail {

/// An equation at a point: its results, and its derivative as a call that can be pushed through and
/// pulled back.
struct ControlLinear {
  std::vector<Tensor> results;
  LinearCall call;
};

namespace control_linear {

using Flags = Dependence::Flags;

/// Dependence through what has a derivative: floats, and ops whose derivative is not zero
/// everywhere.
Dependence differentiable();

/// The equation with tangents beside its values. Where each operand and its tangent went among its
/// operands, and each result and its tangent among its results; −1: no tangent. Operands whose
/// tangents are zero have one where the equation makes others of theirs.
struct TangentForm {
  ParamsRef params;
  std::vector<Tensor> operands;
  Vec<int> value_at, tangent_at, result_at, result_tangent_at;
};
/// `t`: one per operand, undefined: zero.
TangentForm with_tangents(const Equation&, std::span<const Tensor> x, std::span<const Tensor> t);

/// Emits the equation with tangents beside its values: results, then tangents (undefined: zero).
/// `t`: one per operand.
void forward(const Equation&, std::span<const Tensor> x, std::span<const Tensor> t,
             std::vector<Tensor>& results, std::vector<Tensor>& tangents);

/// Emits the equation so that what its transpose needs is kept. `wanted`: which operands have a
/// tangent.
ControlLinear linearize(const Equation&, std::span<const Tensor> x, const Flags& wanted);

/// Of an equation `name` whose outputs are `results` results, then residuals, which come behind
/// `own` ones. `l`: what push and pull know.
template <class L>
ControlLinear control_linear_of(const char* name, std::shared_ptr<L> l, std::vector<Tensor> own,
                                const std::vector<Tensor>& out, std::size_t results) {
  const auto behind = out.begin() + static_cast<std::ptrdiff_t>(results);
  ControlLinear c;
  c.results.assign(out.begin(), behind);
  c.call.name = name;
  c.call.residuals = std::move(own);
  c.call.residuals.insert(c.call.residuals.end(), behind, out.end());
  c.call.push = [l](std::span<const Tensor> saved, std::span<const Tensor> ts) {
    return push(*l, saved, ts);
  };
  c.call.pull = [l](std::span<const Tensor> saved, std::span<const Tensor> cts) {
    return pull(*l, saved, cts);
  };
  return c;
}

// By op. control/cond.cpp
ControlLinear linearize_cond(const Equation&, std::span<const Tensor> x, const Flags& wanted);
// control/linear.cpp
ControlLinear linearize_scan(const Equation&, std::span<const Tensor> x, const Flags& wanted);
// control/while_rules.cpp
ControlLinear linearize_while(const Equation&, std::span<const Tensor> x, const Flags& wanted);

// What these files share.
GraphRef shared(GraphBody&&);
Tensor or_zeros(const Tensor&, const Aval&);
inline bool has_derivative(const Aval& a) { return is_inexact(a.dtype); }
/// The types of a Graph's inputs.
Vec<Aval> input_avals(const GraphBody&);
/// With lanes in front, where there are some.
Aval with_lanes(const Lanes&, const Aval&);
std::vector<Tensor> emitted(Op, ParamsRef, std::span<const Tensor> operands, CallSite);
/// A cotangent of an operand that all lanes share: summed over them.
Tensor summed_lanes(const Tensor&);
/// push of a linear call: the equation is run again, with tangents.
LinearRule forward_push(const Equation&, const Flags& wanted);

}  // namespace control_linear
}  // namespace vt::detail
