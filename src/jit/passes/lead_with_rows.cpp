// Matrix products of a function of one row with what rows share, turned so that the rows' operand
// comes first: with many rows these are then the first axis of all that follows.
#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/dependence.hpp"
#include "passes.hpp"

namespace vt::detail {

namespace rows_lead {

/// dot_general(a, b) as one of (b, a), whose results have other axes first: they are exchanged
/// again.
void turn(GraphBody& to, const Equation& e) {
  const auto& p = e.as<DotParams>();
  const int batch = static_cast<int>(p.lhs_batch.size()),
            left =
                to.aval(e.inputs[0]).shape.rank() - batch - static_cast<int>(p.lhs_contract.size()),
            right =
                to.aval(e.inputs[1]).shape.rank() - batch - static_cast<int>(p.rhs_contract.size());
  Equation turned = e;
  std::swap(turned.inputs[0], turned.inputs[1]);
  turned.params =
      make_params(DotParams{p.rhs_contract, p.lhs_contract, p.rhs_batch, p.lhs_batch, p.dtype});
  if (left == 0 || right == 0) {
    to.equations.push_back(std::move(turned));
    return;
  }
  Aval between = to.aval(e.outputs[0]);
  PermutationParams back;
  for (int i = 0; i < batch + left + right; ++i) {
    const int own = i < batch ? i : i < batch + left ? i + right : i - left;
    back.permutation.push_back(own);
    between.shape[own] = to.aval(e.outputs[0]).shape[i];
  }
  Equation exchange = e;
  exchange.op = Op::transpose;
  exchange.params = make_params(std::move(back));
  exchange.inputs.clear();
  turned.outputs.clear();
  turned.outputs.push_back(to.fresh(between));
  exchange.inputs.push_back(turned.outputs[0]);
  to.equations.push_back(std::move(turned));
  to.equations.push_back(std::move(exchange));
}

}  // namespace rows_lead

GraphBody lead_with_rows(GraphBody body, const Vec<bool>& mapped) {
  using namespace rows_lead;
  Dependence dependence;
  Vec<bool> of_row(body.avals.size());
  for (std::size_t i = 0; i < mapped.size(); ++i) of_row[body.inputs[i]] = mapped[i];
  const RecycledVec<Equation> equations = std::move(body.equations);
  body.equations = {};
  for (const Equation& e : equations) {
    Dependence::Flags operands;
    for (Var v : e.inputs) operands.push_back(of_row[v]);
    const Dependence::Flags made = dependence.results(body, e, operands);
    for (std::size_t i = 0; i < made.size(); ++i) of_row[e.outputs[i]] = made[i];
    if (e.op == Op::dot_general && !operands[0] && operands[1]) turn(body, e);
    else body.equations.push_back(e);
    of_row.resize(body.avals.size(), true);
  }
  return body;
}

}  // namespace vt::detail
