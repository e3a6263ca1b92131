// Row sums: which products of one row become a product over all rows.
#include "row_sums.hpp"

#include <algorithm>
#include <memory>

#include "../../trace/ir/sub_graph.hpp"

namespace vt::detail {

namespace row_sums {

const Equation* maker(const GraphBody& g, const Vec<int>& makers, Var v) {
  return makers[v] < 0 ? nullptr : &g.equations[makers[v]];
}

// Are axes 0 … count − 1 contracted, in this order?
bool leads(const Axes& axes) {
  for (std::size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int>(i)) return false;
  return true;
}

// The two operands of v, a product aᵀ b, also if it is transposed afterwards or reshaped; {−1, −1}:
// it is no such product.
std::pair<Var, Var> factors(const GraphBody& g, const Vec<int>& makers, Var v) {
  bool swapped = false;
  for (;;) {
    const Equation* e = maker(g, makers, v);
    if (!e) return {-1, -1};
    if (e->op == Op::reshape) {
      v = e->inputs[0];
      continue;
    }
    if (e->op == Op::transpose) {
      const Axes& p = e->as<PermutationParams>().permutation;
      if (p.size() != 2 || g.aval(e->inputs[0]).shape.size() != 2) return {-1, -1};
      if (p[0] == 1) swapped = !swapped;
      v = e->inputs[0];
      // A reshape below would be one of another matrix.
      const Equation* below = maker(g, makers, v);
      if (!below || below->op != Op::dot_general) return {-1, -1};
      continue;
    }
    if (e->op != Op::dot_general) return {-1, -1};
    const auto& p = e->as<DotParams>();
    const DType d = g.aval(v).dtype;
    const bool plain = p.lhs_batch.empty() && leads(p.lhs_contract) && leads(p.rhs_contract) &&
                       (d == DType::f32 || d == DType::f64) && p.dtype == d &&
                       g.aval(e->inputs[0]).dtype == d && g.aval(e->inputs[1]).dtype == d;
    if (!plain) return {-1, -1};
    return swapped ? std::pair{e->inputs[1], e->inputs[0]} : std::pair{e->inputs[0], e->inputs[1]};
  }
}

}  // namespace row_sums

RowSums split_row_sums(const GraphRef& body, const SmallVec<bool, 4>& summed) {
  using namespace row_sums;
  RowSums split;
  if (none_of(summed, [](bool s) { return s; })) {
    split.body = body;
    split.own = summed.size();
    return split;
  }
  const Vec<int> makers = makers_of(*body);
  GraphBody rows = *body;
  rows.outputs.clear();
  for (std::size_t i = 0; i < summed.size(); ++i)
    if (!summed[i]) rows.outputs.push_back(body->outputs[i]);
  split.own = rows.outputs.size();
  const auto output = [&](Var v) {
    const auto at = std::find(rows.outputs.begin(), rows.outputs.end(), v);
    const auto i = static_cast<int>(at - rows.outputs.begin());
    if (at == rows.outputs.end()) rows.outputs.push_back(v);
    return i;
  };
  for (std::size_t i = 0; i < summed.size(); ++i) {
    if (!summed[i]) continue;
    const Var v = body->outputs[i];
    const auto [a, b] = factors(*body, makers, v);
    RowSum sum;
    sum.a = output(a < 0 ? v : a);
    sum.m = body->aval(a < 0 ? v : a).elements();
    if (a >= 0) {
      const Equation* e = nullptr;
      for (Var at = v; !e || e->op != Op::dot_general; at = e->inputs[0])
        e = maker(*body, makers, at);
      for (std::size_t k = 0; k < e->as<DotParams>().lhs_contract.size(); ++k)
        sum.depth *= body->aval(e->inputs[0]).shape[k];
      sum.b = output(b);
      sum.m /= std::max<std::int64_t>(sum.depth, 1);
      sum.n = body->aval(b).elements() / std::max<std::int64_t>(sum.depth, 1);
    }
    split.sums.push_back(sum);
  }
  split.body = std::make_shared<const GraphBody>(simplify(rows, SimplifyFor::running));
  return split;
}

}  // namespace vt::detail
