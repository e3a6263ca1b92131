// Matrix products whose operands' axes do not collapse: transpositions in front of them.
#include <algorithm>

#include "../../trace/ir/sub_graph.hpp"
#include "../fusion/matmul_spec.hpp"
#include "passes.hpp"

namespace vt::detail {

GraphBody order_product_operands(const GraphBody& graph) {
  GraphBody result = graph;
  result.equations.clear();
  for (const Equation& e : graph.equations) {
    if (e.op != Op::dot_general) {
      result.equations.push_back(e);
      continue;
    }
    DotParams p = e.as<DotParams>();
    const MatmulPlan plan = plan_matmul(p, graph.aval(e.inputs[0]), graph.aval(e.inputs[1]));
    Equation product = e;
    const auto reorder = [&](std::size_t operand, const Axes& permutation, Axes& contract,
                             Axes& batch) {
      product.inputs[operand] =
          add_equation(result, Op::transpose, make_params(PermutationParams{permutation}),
                       {e.inputs[operand]}, e.where);
      for (Axes* axes : {&contract, &batch})
        for (int& axis : *axes)
          axis = static_cast<int>(std::find(permutation.begin(), permutation.end(), axis) -
                                  permutation.begin());
    };
    if (plan.lhs_permutation) reorder(0, *plan.lhs_permutation, p.lhs_contract, p.lhs_batch);
    if (plan.rhs_permutation) reorder(1, *plan.rhs_permutation, p.rhs_contract, p.rhs_batch);
    if (plan.lhs_permutation || plan.rhs_permutation) product.params = make_params(std::move(p));
    result.equations.push_back(std::move(product));
  }
  return result;
}

}  // namespace vt::detail
