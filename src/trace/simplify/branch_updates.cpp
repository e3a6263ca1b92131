// Moves updates out of branches: where each branch of a cond gives an array as it got it, or with
// some elements overwritten, the cond gives what is written and where, and the array is updated
// behind it. In a loop that may happen in place, while a cond that gives the array makes a new one.
#include <algorithm>
#include <memory>
#include <optional>

#include <vt/detail/message.hpp>

#include "../ir/collectives.hpp"
#include "../ir/sub_graph.hpp"
#include "control.hpp"

namespace vt::detail::simplification {

namespace branch_updates {

/// May it be an update that changes nothing: of nothing, or of what is there already?
bool can_do_nothing(const GraphBody& g, const Equation& e) {
  if (e.op == Op::dynamic_update_slice) return true;
  // index −1 is dropped
  return is_scatter(e.op) && e.as<ScatterParams>().mode == IndexMode::fill &&
         !e.as<ScatterParams>().scatter_dims_to_operand_dims.empty() &&
         !is_unsigned(g.aval(e.inputs[1]).dtype);
}

/// The last updates that branches make of one of their operands.
struct Updates {
  std::size_t input = 0;          ///< of the branches
  Vec<const Equation*> update;    ///< per branch; null: none
  const GraphBody* of = nullptr;  ///< a branch that has one
  const Equation* first = nullptr;
};

bool alike(const GraphBody& g, const Equation& a, const GraphBody& h, const Equation& b) {
  if (a.op != b.op || a.inputs.size() != b.inputs.size() ||
      (a.op != Op::dynamic_update_slice && !(a.as<ScatterParams>() == b.as<ScatterParams>())))
    return false;
  for (std::size_t i = 1; i < a.inputs.size(); ++i) {
    const Aval &x = g.aval(a.inputs[i]), &y = h.aval(b.inputs[i]);
    if (x.dtype != y.dtype || x.shape != y.shape) return false;
  }
  return true;
}

std::optional<Updates> updates_of(const CondParams& p, std::size_t result) {
  Updates u;
  std::optional<std::size_t> input;
  for (const GraphRef& branch : p.branches) {
    const Vec<int> makers = makers_of(*branch);
    const auto maker = [&](Var v) {
      return makers[v] < 0 ? nullptr : &branch->equations[makers[v]];
    };
    const Equation* const e = maker(branch->outputs[result]);
    Var array = branch->outputs[result];
    for (const Equation* made = e; made; made = maker(array)) {
      if (!can_do_nothing(*branch, *made)) return std::nullopt;
      array = made->inputs[0];
    }
    const auto found = std::find(branch->inputs.begin(), branch->inputs.end(), array);
    if (found == branch->inputs.end()) return std::nullopt;
    const std::size_t here = found - branch->inputs.begin();
    if (input.value_or(here) != here) return std::nullopt;
    input = here;
    u.update.push_back(e);
    if (!e) continue;
    if (u.first && !alike(*u.of, *u.first, *branch, *e)) return std::nullopt;
    u.first = e;
    u.of = branch.get();
  }
  if (!u.first) return std::nullopt;
  const Aval& written = u.of->aval(u.first->inputs[written_operand(u.first->op)]);
  if (2 * written.elements() > u.of->aval(u.first->outputs[0]).elements()) return std::nullopt;
  u.input = *input;
  return u;
}

/// An operand of the update in a branch without one: together they change nothing.
Var nothing_to_write(GraphBody& g, const Updates& u, std::size_t operand) {
  const Equation& e = *u.first;
  const Aval& given = u.of->aval(e.inputs[operand]);
  const Aval wanted(given.dtype, given.shape);
  if (e.op == Op::dynamic_update_slice && operand == 1) {
    const Var array = g.inputs[u.input];
    const std::size_t rank = wanted.shape.rank();
    return add_equation(
        g, Op::slice,
        make_params(SliceParams{Shape::filled(rank, 0), wanted.shape, Shape::filled(rank, 1)}),
        {array});
  }
  const bool indices = is_scatter(e.op) && operand == 1;
  const Scalar value = Scalar(indices ? -1 : 0).converted(wanted.dtype);
  return add_equation(g, Op::full, make_params(FullParams{value, wanted}), {});
}

/// The cond with the array as it is before the last update, and the update.
std::pair<Equation, Equation> apart(GraphBody& g, const Equation& e, std::size_t result,
                                    const Updates& u) {
  CondParams p = e.as<CondParams>();
  for (std::size_t b = 0; b < p.branches.size(); ++b) {
    auto own = std::make_shared<GraphBody>(*p.branches[b]);
    if (u.update[b]) own->outputs[result] = u.update[b]->inputs[0];
    // What nothing_to_write() reads is what it writes over.
    else if (own->outputs[result] != own->inputs[u.input])
      fail(ErrorKind::backend, "vt: internal: a branch without an update changes the array",
           e.where);
    for (std::size_t i = 1; i < u.first->inputs.size(); ++i)
      own->outputs.push_back(u.update[b] ? u.update[b]->inputs[i] : nothing_to_write(*own, u, i));
    p.branches[b] = std::move(own);
  }
  const auto fresh_like = [&](Var v) {
    const Aval& a = u.of->aval(v);
    return g.fresh(Aval(a.dtype, a.shape));
  };
  Equation cond = e, update = *u.first;
  cond.outputs[result] = fresh_like(u.first->inputs[0]);
  update.inputs[0] = cond.outputs[result];
  for (std::size_t i = 1; i < u.first->inputs.size(); ++i) {
    cond.outputs.push_back(fresh_like(u.first->inputs[i]));
    update.inputs[i] = cond.outputs.back();
  }
  update.outputs[0] = e.outputs[result];
  cond.params = make_params(std::move(p));
  return {std::move(cond), std::move(update)};
}

}  // namespace branch_updates

std::size_t move_updates_out(GraphBody& g) {
  using namespace branch_updates;
  std::size_t count = 0;
  for (std::size_t k = 0; k < g.equations.size(); ++k) {
    const Equation& e = g.equations[k];
    if (e.op != Op::cond || lanes_of(e) || keeps_order(e)) continue;
    for (std::size_t result = 0; result < e.outputs.size(); ++result) {
      const std::optional<Updates> u = updates_of(e.as<CondParams>(), result);
      if (!u) continue;
      auto [cond, update] = apart(g, e, result, *u);
      g.equations[k] = std::move(cond);
      g.equations.insert(g.equations.begin() + static_cast<std::ptrdiff_t>(k) + 1,
                         std::move(update));
      ++count;
      --k;  // once more: there may be an update before this one
      break;
    }
  }
  return count;
}

}  // namespace vt::detail::simplification
