// The derivative of cond: each branch also returns the residuals of its derivative, so that no
// branch runs twice.
#include <algorithm>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../build.hpp"
#include "../linearize.hpp"
#include "linear.hpp"
#include "residuals.hpp"

namespace vt::detail::control_linear {

namespace cond_parts {

struct Branch {
  LinearPart part;
  Vec<Residual> residuals;
  GraphBody derived;         // residuals made of others
  Vec<std::size_t> made_of;  // slots
};

/// A slot is one more result of the cond: it holds a residual of each branch that has one of this
/// type, and zeros from the others.
struct Linear {
  Equation equation;
  Flags wanted;  // operands with a tangent
  Vec<Branch> branches;
  Vec<Aval> slots;
  Vec<std::size_t> operands;  // that are kept beside the index

  const CondParams& params() const { return equation.as<CondParams>(); }
  Flags inner() const { return Flags(wanted.begin() + 1, wanted.end()); }
  std::size_t kept_operand(std::size_t i) {
    const std::size_t at = std::find(operands.begin(), operands.end(), i) - operands.begin();
    if (at == operands.size()) operands.push_back(i);
    return at;
  }
};

/// A branch with its residuals behind its results: those that are operands are kept as such.
Recorded linearized_branch(Linear& l, const GraphBody& body, Branch& branch) {
  return record(
      [&](std::span<const Tensor> in) {
        branch.part = linearize_graph(body, in, l.inner());
        std::vector<Tensor> out = std::move(branch.part.outputs), made;
        for (const Tensor& r : branch.part.residuals) {
          std::size_t at = 0;
          while (at < in.size() && !same_value(in[at], r)) ++at;
          if (at < in.size()) {
            branch.residuals.push_back({Residual::From::operand, l.kept_operand(at + 1)});
            continue;
          }
          std::size_t k = 0;
          while (k < made.size() && !same_value(made[k], r)) ++k;
          if (k == made.size()) made.push_back(r);
          branch.residuals.push_back({Residual::From::kept, k});
        }
        branch.part.outputs.clear();
        branch.part.residuals.clear();
        out.insert(out.end(), made.begin(), made.end());
        return out;
      },
      input_avals(body), {.kind = ScopeKind::branch, .transform = "vt::grad"});
}

/// Gives each residual a slot: the first of its type that the branch has not used yet.
void place_residuals(Linear& l, Branch& branch, GraphBody& graph, std::size_t results,
                     Vec<Var>& in_slots) {
  const Derived derived = derive(graph, std::span<const Var>(graph.outputs).subspan(results));
  for (Var v : derived.graph.inputs) {
    std::size_t slot = 0;
    const Aval wanted(graph.aval(v).dtype, graph.aval(v).shape);
    while (slot < l.slots.size() && (l.slots[slot] != wanted || in_slots[slot] >= 0)) ++slot;
    if (slot == l.slots.size()) {
      l.slots.push_back(wanted);
      in_slots.push_back(-1);
    }
    in_slots[slot] = v;
    branch.made_of.push_back(slot);
  }
  for (Residual& r : branch.residuals) {
    if (r.from != Residual::From::kept) continue;
    const int place = derived.place[r.index];
    const std::size_t kept =
        std::find(derived.kept.begin(), derived.kept.end(), r.index) - derived.kept.begin();
    r = place >= 0 ? Residual{Residual::From::derived, static_cast<std::size_t>(place)}
                   : Residual{Residual::From::kept, branch.made_of[kept]};
  }
  branch.derived = derived.graph;
  graph.outputs.resize(results);
}

/// Zeros where a branch has nothing for a slot.
void fill_slots(const Linear& l, GraphBody& graph, const Vec<Var>& in_slots) {
  for (std::size_t s = 0; s < l.slots.size(); ++s) {
    Var v = s < in_slots.size() ? in_slots[s] : -1;
    if (v < 0) {
      Equation e;
      e.op = Op::full;
      e.where = l.equation.where;
      e.params = make_params(FullParams{Scalar(0).converted(l.slots[s].dtype), l.slots[s]});
      e.outputs.push_back(v = graph.fresh(l.slots[s]));
      graph.equations.push_back(std::move(e));
    }
    graph.outputs.push_back(v);
  }
}

/// The derivative of a branch with its residuals as it finds them: the kept operands, then the
/// slots.
LinearPart at(const Branch& branch, std::span<const Tensor> operands,
              std::span<const Tensor> slots) {
  std::vector<Tensor> made_of, derived;
  for (std::size_t s : branch.made_of) made_of.push_back(slots[s]);
  if (!branch.derived.outputs.empty()) derived = replay(branch.derived, made_of);
  LinearPart part;
  part.graph = branch.part.graph;
  part.tangent_of = branch.part.tangent_of;
  part.wanted = branch.part.wanted;
  for (const Residual& r : branch.residuals)
    part.residuals.push_back(r.from == Residual::From::operand ? operands[r.index]
                             : r.from == Residual::From::kept  ? slots[r.index]
                                                               : derived[r.index]);
  return part;
}

/// One cond over what the branches' derivatives make of `in`, (co)tangents of which those without a
/// value are zero. `saved`: the index, the kept operands, the slots. `mapped`: which of `in` hold a
/// value for each lane. `apply`: of one branch.
std::vector<Tensor> applied(
    const Linear& l, std::span<const Tensor> saved, std::span<const Tensor> in,
    std::span<const Aval> avals, const Flags& mapped,
    FunctionRef<std::vector<Tensor>(const LinearPart&, std::span<const Tensor>)> apply) {
  const CondParams& p = l.params();
  const std::size_t operands = l.operands.size(), slots = l.slots.size();
  const GraphBody& any = *p.branches[0];
  CondParams q;
  q.lanes = p.lanes;
  q.lanes.mapped.clear();
  Vec<Aval> inputs;
  const auto add = [&](const Aval& a, bool has_lanes) {
    inputs.emplace_back(a.dtype, a.shape);
    if (q.lanes) q.lanes.mapped.push_back(has_lanes);
  };
  const auto lane = [&](std::size_t i) { return p.lanes && p.lanes.mapped[i]; };
  if (q.lanes) q.lanes.mapped.push_back(lane(0));
  for (std::size_t i : l.operands) add(any.aval(any.inputs[i - 1]), lane(i));
  for (const Aval& a : l.slots) add(a, true);
  std::vector<Tensor> all(saved.begin(), saved.end());
  Vec<std::size_t> given;
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (!in[i].defined()) continue;
    given.push_back(i);
    all.push_back(in[i]);
    add(avals[i], mapped[i]);
  }
  Vec<Recorded> bodies;
  for (const Branch& branch : l.branches)
    bodies.push_back(record(
        [&](std::span<const Tensor> tracers) {
          std::vector<Tensor> here(in.size());
          for (std::size_t k = 0; k < given.size(); ++k)
            here[given[k]] = tracers[operands + slots + k];
          return apply(at(branch, tracers.first(operands), tracers.subspan(operands, slots)), here);
        },
        inputs, {.kind = ScopeKind::branch, .transform = "vt::grad"}));
  Vec<Recorded*> parts;
  for (Recorded& r : bodies) parts.push_back(&r);
  const std::vector<Tensor> captured = share_captures(parts);
  all.insert(all.end(), captured.begin(), captured.end());
  for (std::size_t i = 0; i < captured.size() && q.lanes; ++i) q.lanes.mapped.push_back(false);
  for (Recorded& r : bodies) q.branches.push_back(shared(std::move(r.graph)));
  if (q.branches[0]->outputs.empty()) return {};
  return emitted(Op::cond, make_params(std::move(q)), all, l.equation.where);
}

/// Tangents of the operands → tangents of the results.
std::vector<Tensor> push(const Linear& l, std::span<const Tensor> saved,
                         std::span<const Tensor> ts) {
  const GraphBody& any = *l.params().branches[0];
  Flags varies(any.outputs.size()), mapped;
  for (const Branch& branch : l.branches)
    for (std::size_t i = 0; i < varies.size(); ++i)
      varies[i] = varies[i] || branch.part.tangent_of[i] >= 0;
  std::vector<Tensor> given;  // of the wanted operands
  Vec<Aval> avals;
  for (std::size_t i = 1; i < l.wanted.size(); ++i) {
    if (!l.wanted[i]) continue;
    given.push_back(i < ts.size() ? ts[i] : Tensor());
    avals.push_back(any.aval(any.inputs[i - 1]));
    mapped.push_back(l.params().lanes && l.params().lanes.mapped[i]);
  }
  const std::vector<Tensor> pushed = applied(
      l, saved, given, avals, mapped, [&](const LinearPart& part, std::span<const Tensor> here) {
        const std::vector<Tensor> of_branch = push_linear(part, here);
        std::vector<Tensor> out;
        for (std::size_t i = 0; i < varies.size(); ++i)
          if (varies[i]) out.push_back(or_zeros(of_branch[i], any.aval(any.outputs[i])));
        return out;
      });
  std::vector<Tensor> all(varies.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size(); ++i)
    if (varies[i]) all[i] = pushed[next++];
  return all;
}

/// Cotangents of the results → cotangents of the operands.
std::vector<Tensor> pull(const Linear& l, std::span<const Tensor> saved,
                         std::span<const Tensor> cts) {
  const CondParams& p = l.params();
  const GraphBody& any = *p.branches[0];
  Vec<Aval> avals;
  for (Var v : any.outputs) avals.push_back(any.aval(v));
  const std::vector<Tensor> pulled =
      applied(l, saved, cts, avals, Flags(cts.size(), true),
              [&](const LinearPart& part, std::span<const Tensor> here) {
                std::vector<Tensor> out = pull_linear(part, here);
                for (std::size_t k = 0; k < out.size(); ++k)
                  out[k] = or_zeros(out[k], part.wanted[k]);
                return out;
              });
  std::vector<Tensor> all(l.wanted.size());
  std::size_t next = 0;
  for (std::size_t i = 0; i < all.size() && !pulled.empty(); ++i) {
    if (!l.wanted[i]) continue;
    all[i] = pulled[next++];
    if (p.lanes && !p.lanes.mapped[i]) all[i] = summed_lanes(all[i]);
  }
  return all;
}

}  // namespace cond_parts

ControlLinear linearize_cond(const Equation& e, std::span<const Tensor> x, const Flags& wanted) {
  using namespace cond_parts;
  const auto& p = e.as<CondParams>();
  auto l = std::make_shared<Linear>();
  l->equation = e;
  l->wanted = wanted;
  l->branches.resize(p.branches.size());
  Vec<Recorded> bodies;
  for (std::size_t b = 0; b < p.branches.size(); ++b)
    bodies.push_back(linearized_branch(*l, *p.branches[b], l->branches[b]));
  const std::size_t results = p.branches[0]->outputs.size();
  Vec<Vec<Var>> in_slots(bodies.size());
  for (std::size_t b = 0; b < bodies.size(); ++b) {
    in_slots[b].resize(l->slots.size(), -1);
    place_residuals(*l, l->branches[b], bodies[b].graph, results, in_slots[b]);
  }
  for (std::size_t b = 0; b < bodies.size(); ++b) fill_slots(*l, bodies[b].graph, in_slots[b]);
  Vec<Recorded*> parts;
  for (Recorded& r : bodies) parts.push_back(&r);
  const std::vector<Tensor> captured = share_captures(parts);
  CondParams q;
  q.lanes = p.lanes;
  for (std::size_t i = 0; i < captured.size() && q.lanes; ++i) q.lanes.mapped.push_back(false);
  for (Recorded& r : bodies) q.branches.push_back(shared(std::move(r.graph)));
  std::vector<Tensor> operands(x.begin(), x.end());
  operands.insert(operands.end(), captured.begin(), captured.end());
  const std::vector<Tensor> out = emitted(Op::cond, make_params(std::move(q)), operands, e.where);
  std::vector<Tensor> own{x[0]};
  for (std::size_t i : l->operands) own.push_back(x[i]);
  return control_linear_of("vt::cond", l, std::move(own), out, results);
}

}  // namespace vt::detail::control_linear
