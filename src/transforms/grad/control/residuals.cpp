// Residuals of branches and loops: which values forward keeps, and which backward computes again.
#include "residuals.hpp"

#include <algorithm>

#include "../../../trace/ir/sub_graph.hpp"

namespace vt::detail::control_linear {

namespace residual_parts {

bool is_cheap(Op op) {
  return op == Op::add || op == Op::sub || op == Op::mul || op == Op::neg || op == Op::integer_pow;
}

/// A kernel lays these out as it reads them; a broadcast kept for backward would be what it is made
/// of several times.
bool is_free(Op op) {
  return op == Op::full || op == Op::iota || op == Op::broadcast_in_dim || op == Op::reshape ||
         op == Op::transpose || op == Op::convert || op == Op::eq;
}

}  // namespace residual_parts

Derived derive(const GraphBody& body, std::span<const Var> candidates) {
  constexpr int most_operations = 4;
  Derived d;
  d.graph.avals = body.avals;
  const Vec<int> maker = makers_of(body);
  const auto number = [&](Var v) -> std::size_t {
    return std::find(candidates.begin(), candidates.end(), v) - candidates.begin();
  };
  Vec<int> needed;
  // Is `v` made of candidates that are made before equation `before`? A candidate is a leaf but
  // where the search begins.
  const auto made_of_others = [&](auto& self, Var v, int& left, Vec<int>& equations) -> bool {
    const int k = maker[v];
    if (k < 0) return false;
    const Equation& e = body.equations[k];
    if (!residual_parts::is_free(e.op) && (!residual_parts::is_cheap(e.op) || --left < 0))
      return false;
    for (Var o : e.inputs)
      if (number(o) == candidates.size() && !self(self, o, left, equations)) return false;
    equations.push_back(k);
    return true;
  };
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    int left = most_operations;
    Vec<int> equations;
    const Var v = candidates[i];
    const bool derived = made_of_others(made_of_others, v, left, equations);
    d.place.push_back(derived ? static_cast<int>(d.graph.outputs.size()) : -1);
    if (!derived) {
      d.kept.push_back(i);
      d.graph.inputs.push_back(v);
      continue;
    }
    d.graph.outputs.push_back(v);
    needed.insert(needed.end(), equations.begin(), equations.end());
  }
  // In their order in the body, in which operands come first; each once.
  for (std::size_t k = 0; k < body.equations.size(); ++k)
    if (std::find(needed.begin(), needed.end(), static_cast<int>(k)) != needed.end())
      d.graph.equations.push_back(body.equations[k]);
  return d;
}

}  // namespace vt::detail::control_linear
