// The jvp and transpose rules of cond, while and scan.
#include <vt/detail/small_vec.hpp>

#include "../../../trace/record/without_effects.hpp"
#include "../build.hpp"
#include "../control/linear.hpp"
#include "../jvp.hpp"
#include "../transpose.hpp"

namespace vt::detail {

namespace jvp_rules {

void control(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  if (c.mode == JvpMode::forward) {
    control_linear::forward(c.equation, c.x, c.t, results, tangents);
    return;
  }
  Vec<bool> wanted;
  for (const Tensor& t : c.t) wanted.push_back(t.defined());
  ControlLinear linear = control_linear::linearize(c.equation, c.x, wanted);
  results = std::move(linear.results);
  Vec<Aval> avals;
  for (const Tensor& t : results) avals.push_back(aval_of(t));
  tangents = emit_linear_call(std::move(linear.call), c.t, avals, c.equation.where);
}

}  // namespace jvp_rules

namespace transpose_rules {

// A control-flow equation that is linear in some operands is its own derivative with respect to
// them, at zero as anywhere.
void control(const TransposeCall& c) {
  Vec<bool> wanted;
  std::vector<Tensor> x;
  for (std::size_t i = 0; i < c.x.size(); ++i) {
    wanted.push_back(c.linear(i));
    x.push_back(c.linear(i) ? grad_build::zeros(c.operand(i)) : c.x[i]);
  }
  const ControlLinear linear = control_linear::linearize(without_effects(c.equation), x, wanted);
  const std::vector<Tensor> pulled = linear.call.pull(linear.call.residuals, c.results);
  for (std::size_t i = 0; i < pulled.size(); ++i)
    if (wanted[i]) c.cotangents[i] = pulled[i];
}

}  // namespace transpose_rules

}  // namespace vt::detail
