// Joins branches that follow each other: a cond that uses results of an earlier one with the same
// index becomes one with it. A branch and its derivative are like that if the value itself is not
// needed; residuals then stay inside.
#include "control.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "../ir/collectives.hpp"
#include "../ir/sub_graph.hpp"

namespace vt::detail::simplification {

namespace joined_branches {

/// Which result of `a` operand k of `b` is; −1: none.
int source(const Equation& a, const Equation& b, std::size_t k) {
  const auto found = std::find(a.outputs.begin(), a.outputs.end(), b.inputs[k]);
  return found == a.outputs.end() ? -1 : static_cast<int>(found - a.outputs.begin());
}

bool go_together(const Equation& a, const Equation& b) {
  if (a.op != Op::cond || a.inputs[0] != b.inputs[0] || keeps_order(a) || keeps_order(b))
    return false;
  const auto &p = a.as<CondParams>(), &q = b.as<CondParams>();
  if (p.branches.size() != q.branches.size() || p.lanes.count != q.lanes.count) return false;
  if (p.lanes && p.lanes.mapped[0] != q.lanes.mapped[0]) return false;
  bool reads = false;
  for (std::size_t k = 1; k < b.inputs.size(); ++k) {
    const int from = source(a, b, k);
    if (from < 0) continue;
    reads = true;
    if (q.lanes && !q.lanes.mapped[k]) return false;  // a branch that sees the results of all lanes
    for (std::size_t i = 0; i < p.branches.size(); ++i) {
      const GraphBody &first = *p.branches[i], &then = *q.branches[i];
      if (!(first.aval(first.outputs[from]) == then.aval(then.inputs[k - 1]))) return false;
    }
  }
  return reads;
}

/// Can the first wait until the second runs?
bool can_wait(const GraphBody& g, std::size_t a, std::size_t b, const Vec<char>& gone) {
  const Equation& first = g.equations[a];
  for (std::size_t k = a + 1; k < b; ++k) {
    if (gone[k]) continue;
    if (keeps_order(g.equations[k])) return false;
    for (Var v : g.equations[k].inputs)
      if (std::find(first.outputs.begin(), first.outputs.end(), v) != first.outputs.end())
        return false;
  }
  return true;
}

Equation joined(const Equation& a, const Equation& b) {
  const auto &p = a.as<CondParams>(), &q = b.as<CondParams>();
  CondParams both;
  both.lanes = p.lanes;
  Equation e = a;
  for (std::size_t k = 1; k < b.inputs.size(); ++k) {
    if (source(a, b, k) >= 0) continue;
    e.inputs.push_back(b.inputs[k]);
    if (both.lanes) both.lanes.mapped.push_back(q.lanes.mapped[k]);
  }
  e.outputs.insert(e.outputs.end(), b.outputs.begin(), b.outputs.end());
  for (std::size_t i = 0; i < p.branches.size(); ++i) {
    auto body = std::make_shared<GraphBody>(*p.branches[i]);
    const GraphBody& then = *q.branches[i];
    Vec<Var> operands;
    for (std::size_t k = 1; k < b.inputs.size(); ++k) {
      const int from = source(a, b, k);
      if (from < 0) body->inputs.push_back(body->fresh(then.aval(then.inputs[k - 1])));
      operands.push_back(from < 0 ? body->inputs.back() : body->outputs[from]);
    }
    for (Var v : copied(then, operands, *body)) body->outputs.push_back(v);
    both.branches.push_back(std::move(body));
  }
  e.params = make_params(std::move(both));
  return e;
}

}  // namespace joined_branches

std::size_t join_branches(GraphBody& g) {
  using namespace joined_branches;
  if (none_of(g.equations, [](const Equation& e) { return e.op == Op::cond; })) return 0;
  std::size_t count = 0;
  Vec<int> maker = makers_of(g);
  Vec<char> gone(g.equations.size(), 0);
  // The equations before `limit` that make operands of b, the latest first.
  const auto makers = [&](const Equation& b, std::size_t limit) {
    Vec<int> found;
    for (Var v : b.inputs)
      if (maker[v] >= 0 && static_cast<std::size_t>(maker[v]) < limit) found.push_back(maker[v]);
    std::sort(found.begin(), found.end(), std::greater<>());
    found.resize(std::unique(found.begin(), found.end()) - found.begin());
    return found;
  };
  for (std::size_t b = 0; b < g.equations.size(); ++b) {
    if (g.equations[b].op == Op::cond) {
      Vec<int> before = makers(g.equations[b], b);
      for (std::size_t k = 0; k < before.size(); ++k) {
        const std::size_t a = before[k];
        if (!go_together(g.equations[a], g.equations[b]) || !can_wait(g, a, b, gone)) continue;
        g.equations[b] = joined(g.equations[a], g.equations[b]);
        gone[a] = 1;
        ++count;
        before = makers(g.equations[b], a);
        k = static_cast<std::size_t>(-1);
      }
      for (Var v : g.equations[b].outputs) maker[v] = static_cast<int>(b);
    }
  }
  if (count == 0) return 0;
  erase_if(g.equations, [&](const Equation& e) { return gone[&e - g.equations.data()] != 0; });
  return count;
}

}  // namespace vt::detail::simplification
