// Rewrites loops and branches in which each lane has a predicate of its own into plain ones of all
// lanes under masks. A loop goes on as long as any lane does, and lanes that have stopped keep
// their state; each lane selects the result of its own branch. The CPU gathers lanes instead
// (control_lanes.cpp), for which a device would have to report to the host in each iteration.
#include "masked_lanes.hpp"

#include <memory>

#include <vt/ops.hpp>
#include <vt/tensor.hpp>

#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/sub_graph.hpp"
#include "../../trace/record/batching.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"
#include "../regions/register_kernel.hpp"

namespace vt::detail {

namespace lane_masks {

using Tensors = std::vector<Tensor>;

bool is_masked(const GraphBody& g, const Equation& e, const RegisterLimits& limits) {
  return lanes_of(e) && !keeps_order(e) && !register_form(alone(g, e), 0, limits);
}

// Could it run for ever on a state that nobody asked it for?
bool may_not_end(const GraphBody& g) {
  return has_equation(
      g, [](const Equation& e) { return e.op == Op::while_ || e.op == Op::recursive_call; });
}
// Is it worth to ask whether any lane takes it?
bool is_large(const GraphBody& g) {
  return has_equation(g, [](const Equation& e) {
    const Family f = family_of(e.op);
    return f == Family::contract || f == Family::linalg || f == Family::spectral ||
           f == Family::order || is_control(e.op);
  });
}

Tensor for_all(const Tensor& x, std::int64_t lanes) {
  Shape shape{lanes};
  shape.append(x.shape().begin(), x.shape().end());
  return vt::broadcast_to(x, shape);
}
Tensor chosen(const Tensor& holds, const Tensor& a, const Tensor& b) {
  Shape shape = Shape::filled(a.rank(), 1);
  shape[0] = a.shape()[0];
  return vt::where(vt::reshape(holds, shape), a, b);
}
// No body sees a state that its condition refused, if that could matter: such lanes take the place
// of the first one that `holds`.
void stand_in(Tensors& values, const Vec<bool>& mapped, const Tensor& holds) {
  const Tensor from =
      vt::where(holds, vt::arange(holds.shape()[0]), vt::argmax(holds.astype(DType::i32)));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (mapped[i]) values[i] = vt::take(values[i], from, 0);
}

GraphRef body_of(const FlatFunction& f, std::span<const Tensor> arguments) {
  Vec<Aval> avals;
  for (const Tensor& t : arguments) avals.push_back(aval_of(t));
  return std::make_shared<const GraphBody>(
      closed(record(f, avals, {.kind = ScopeKind::branch, .transform = "vt::vmap"})));
}
Tensors listed(const SmallVec<Tensor, 1>& all) { return Tensors(all.begin(), all.end()); }

Tensors masked_while(const Equation& e, std::span<const Tensor> operands) {
  const auto& p = e.as<WhileParams>();
  const std::size_t carries = p.carries;
  const std::int64_t lanes = p.lanes.count;
  Vec<bool> mapped;
  Tensors values;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    mapped.push_back(i < carries || p.lanes.mapped[i]);
    values.push_back(mapped[i] && !p.lanes.mapped[i] ? for_all(operands[i], lanes) : operands[i]);
  }
  const GraphBody condition = batch_body(*p.condition, mapped, lanes),
                  body = batch_body(*p.body, mapped, lanes);
  const bool stands_in = lanes > 0 && may_not_end(*p.body);
  // Which lanes go on is carried behind the others.
  values.insert(values.begin() + static_cast<std::ptrdiff_t>(carries),
                replay(condition, values)[0]);
  const auto without_mask = [&](std::span<const Tensor> all) {
    Tensors rest(all.begin(), all.end());
    rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(carries));
    return rest;
  };
  WhileParams masked;
  masked.carries = p.carries + 1;
  masked.checkpoints = p.checkpoints;
  masked.condition =
      body_of([&](std::span<const Tensor> all) { return Tensors{vt::any(all[carries])}; }, values);
  masked.body = body_of(
      [&](std::span<const Tensor> all) {
        const Tensor& holds = all[carries];
        Tensors state = without_mask(all), given = state;
        if (stands_in) stand_in(given, mapped, holds);
        const Tensors made = replay(body, given);
        for (std::size_t i = 0; i < carries; ++i) state[i] = chosen(holds, made[i], state[i]);
        Tensors next(state.begin(), state.begin() + static_cast<std::ptrdiff_t>(carries));
        next.push_back(vt::logical_and(holds, replay(condition, state)[0]));
        return next;
      },
      values);
  Tensors results = listed(emit_all(Op::while_, make_params(std::move(masked)), values, e.where));
  results.pop_back();
  return results;
}

Tensors masked_cond(const Equation& e, std::span<const Tensor> operands) {
  const auto& p = e.as<CondParams>();
  const std::int64_t lanes = p.lanes.count, last = static_cast<std::int64_t>(p.branches.size()) - 1;
  const Tensor index =
      vt::clip(p.lanes.mapped[0] ? operands[0] : for_all(operands[0], lanes), 0, last);
  const Vec<bool> mapped(p.lanes.mapped.begin() + 1, p.lanes.mapped.end());
  const Tensors given(operands.begin() + 1, operands.end());
  Tensors results;
  for (std::int64_t b = 0; b <= last; ++b) {
    const GraphBody& branch = *p.branches[b];
    const GraphBody body = batch_body(branch, mapped, lanes);
    const bool stands_in = lanes > 0 && may_not_end(branch);
    if (!stands_in && !is_large(branch)) {
      Tensors made = replay(body, given);
      if (results.empty()) {
        results = std::move(made);  // of the lanes that another one takes it is written over
        continue;
      }
      for (std::size_t k = 0; k < made.size(); ++k)
        results[k] = chosen(vt::equal(index, b), made[k], results[k]);
      continue;
    }
    if (results.empty())
      for (Var v : body.outputs)
        results.push_back(full_tensor(Scalar(false).converted(body.aval(v).dtype), body.aval(v)));
    const std::size_t count = results.size();
    // Only if any lane takes it.
    Tensors own{vt::equal(index, b)};
    own.insert(own.end(), results.begin(), results.end());
    own.insert(own.end(), given.begin(), given.end());
    CondParams asked;
    asked.branches.push_back(body_of(
        [&](std::span<const Tensor> all) {
          return Tensors(all.begin() + 1, all.begin() + 1 + static_cast<std::ptrdiff_t>(count));
        },
        own));
    asked.branches.push_back(body_of(
        [&](std::span<const Tensor> all) {
          Tensors x(all.begin() + 1 + static_cast<std::ptrdiff_t>(count), all.end());
          if (stands_in) stand_in(x, mapped, all[0]);
          Tensors made = replay(body, x);
          for (std::size_t k = 0; k < count; ++k) made[k] = chosen(all[0], made[k], all[1 + k]);
          return made;
        },
        own));
    own.insert(own.begin(), vt::any(own[0]).astype(DType::i32));
    results = listed(emit_all(Op::cond, make_params(std::move(asked)), own, e.where));
  }
  return results;
}

}  // namespace lane_masks

GraphBody mask_lanes(const GraphBody& graph, const RegisterLimits& limits) {
  if (none_of(graph.equations,
              [&](const Equation& e) { return lane_masks::is_masked(graph, e, limits); }))
    return graph;
  Vec<Aval> avals;
  for (Var v : graph.inputs) avals.push_back(graph.aval(v));
  Recorded all = record(
      [&](std::span<const Tensor> inputs) {
        std::vector<Tensor> values(graph.avals.size()), operands, results;
        for (std::size_t i = 0; i < inputs.size(); ++i) values[graph.inputs[i]] = inputs[i];
        for (const Equation& e : graph.equations) {
          operands.clear();
          for (Var v : e.inputs) operands.push_back(values[v]);
          if (!lane_masks::is_masked(graph, e, limits)) {
            repeat(graph, e, operands, [&](Var v, Tensor t) { values[v] = std::move(t); });
            continue;
          }
          const LikeEquation like(e);
          std::vector<Tensor> made = e.op == Op::while_ ? lane_masks::masked_while(e, operands)
                                                        : lane_masks::masked_cond(e, operands);
          for (std::size_t i = 0; i < made.size(); ++i) values[e.outputs[i]] = std::move(made[i]);
        }
        for (Var v : graph.outputs) results.push_back(values[v]);
        return results;
      },
      avals, {.kind = ScopeKind::branch, .transform = "vt::vmap"});
  return closed(std::move(all));
}

}  // namespace vt::detail
