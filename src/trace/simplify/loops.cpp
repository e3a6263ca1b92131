// Rewrites of loops: invariants move in front of the loop, and carries that are always equal become
// one.
#include <algorithm>
#include <optional>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "../ir/sub_graph.hpp"
#include "control.hpp"

namespace vt::detail::simplification {

namespace loop_parts {

/// A value that is computed once and kept instead of computed anew is no larger than what it is
/// made from, or small.
constexpr std::size_t small = 64 * 1024;  // bytes

/// Numbers that are the same for Vars of the same value, given such numbers for the inputs: a Var's
/// own or that of an earlier one.
Vec<Var> value_numbers(const GraphBody& g, Vec<Var> numbers) {
  HashMap<std::size_t, SmallVec<const Equation*, 1>> known;
  const auto same_inputs = [&](const Equation& a, const Equation& b) {
    const auto number = [&](const Equation& e, std::size_t i) { return numbers[e.inputs[i]]; };
    bool straight = a.inputs.size() == b.inputs.size();
    for (std::size_t i = 0; straight && i < a.inputs.size(); ++i)
      straight = number(a, i) == number(b, i);
    return straight ||
           (commutes(a.op) && number(a, 0) == number(b, 1) && number(a, 1) == number(b, 0));
  };
  for (const Equation& e : g.equations) {
    if (keeps_order(e)) continue;
    SmallVec<Var, 4> inputs;
    for (Var v : e.inputs) inputs.push_back(numbers[v]);
    const std::size_t hash = hash_equation(e.op, e.params, {inputs.data(), inputs.size()});
    const Equation* same = nullptr;
    SmallVec<const Equation*, 1>& candidates = known[hash];
    for (const Equation* k : candidates)
      if (!same && k->op == e.op && same_inputs(*k, e) && equal(k->params, e.params)) same = k;
    if (!same) {
      candidates.push_back(&e);
      continue;
    }
    for (std::size_t i = 0; i < e.outputs.size(); ++i)
      numbers[e.outputs[i]] = numbers[same->outputs[i]];
  }
  return numbers;
}

/// Per Var: the number that all its elements are, if that follows from the inputs'.
using Numbers = Vec<std::optional<Scalar>>;
/// `levels`: so deep bodies are followed. Each loop goes to a fixpoint, and those in it each time.
Numbers numbers_of(const GraphBody& g, const Numbers& inputs, int levels);
constexpr int most_levels = 3;

bool same(const std::optional<Scalar>& a, const std::optional<Scalar>& b) {
  return a && b && *a == *b;
}
/// The carries that stay what they are at first; those of one element that are no predicates are
/// not followed: they count.
Numbers constant_carries(const GraphBody& body, std::size_t carries, Numbers inputs, int levels) {
  for (std::size_t i = 0; i < carries; ++i) {
    const Aval& a = body.aval(body.inputs[i]);
    if (!is_bool(a.dtype) && a.elements() == 1) inputs[i].reset();
  }
  for (bool changed = true; changed;) {
    changed = false;
    const Numbers after = numbers_of(body, inputs, levels - 1);
    for (std::size_t i = 0; i < carries; ++i) {
      if (!inputs[i] || same(inputs[i], after[body.outputs[i]])) continue;
      inputs[i].reset();
      changed = true;
    }
  }
  inputs.resize(carries);
  return inputs;
}

void add_numbers(const GraphBody& g, const Equation& e, Numbers& known, int levels) {
  if (levels == 0 && is_control(e.op)) return;
  const auto in = [&](std::size_t i) { return known[e.inputs[i]]; };
  std::optional<Scalar>& out = known[e.outputs[0]];
  Numbers operands;
  switch (e.op) {
    case Op::full:
      if (!is_unset(e)) out = e.as<FullParams>().value.converted(g.aval(e.outputs[0]).dtype);
      return;
    case Op::reshape:
    case Op::transpose:
    case Op::broadcast_in_dim:
    case Op::slice:
    case Op::dynamic_slice:
    case Op::rev: out = in(0); return;
    case Op::dynamic_update_slice:
      if (same(in(0), in(1))) out = in(0);
      return;
    case Op::and_:
    case Op::or_:
      for (std::size_t i : {0, 1})  // what decides alone
        if (in(i) && is_bool(g.aval(e.inputs[i]).dtype) && in(i)->is_value(e.op == Op::or_ ? 1 : 0))
          out = in(i);
      if (same(in(0), in(1))) out = in(0);
      return;
    case Op::concatenate:
      if (all_of(e.inputs, [&](Var v) { return same(known[v], in(0)); })) out = in(0);
      return;
    case Op::select:
      if (same(in(1), in(2))) out = in(1);
      return;
    case Op::scatter:
      if (same(in(0), in(2))) out = in(0);
      return;
    case Op::while_: {
      for (std::size_t i = 0; i < e.inputs.size(); ++i) operands.push_back(in(i));
      const auto& p = e.as<WhileParams>();
      const Numbers last = constant_carries(*p.body, static_cast<std::size_t>(p.carries),
                                            std::move(operands), levels);
      for (std::size_t i = 0; i < last.size(); ++i) known[e.outputs[i]] = last[i];
      return;
    }
    case Op::cond: {
      for (std::size_t i = 1; i < e.inputs.size(); ++i) operands.push_back(in(i));
      Vec<Numbers> results;
      for (const GraphRef& branch : e.as<CondParams>().branches) {
        const Numbers inside = numbers_of(*branch, operands, levels - 1);
        results.emplace_back();
        for (Var v : branch->outputs) results.back().push_back(inside[v]);
      }
      for (std::size_t k = 0; k < e.outputs.size(); ++k)
        if (all_of(results, [&](const Numbers& r) { return same(r[k], results[0][k]); }))
          known[e.outputs[k]] = results[0][k];
      return;
    }
    default: return;
  }
}

Numbers numbers_of(const GraphBody& g, const Numbers& inputs, int levels) {
  Numbers known(g.avals.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) known[g.inputs[i]] = inputs[i];
  for (const Equation& e : g.equations)
    if (!e.outputs.empty()) add_numbers(g, e, known, levels);
  return known;
}

}  // namespace loop_parts

/// Carries that every iteration leaves as they are at first, all elements being one number: masks
/// of derivatives, say, of which rows are overwritten with the same.
bool ControlRewrite::settle_carries() {
  if (!is_loop()) return false;
  const GraphBody& g = step_body();
  loop_parts::Numbers inputs(g.inputs.size());
  Vec<std::size_t> carries;
  bool any = false;
  for (std::size_t i = 0, next = 0; i < carries_; ++i) {
    if (!is_carry(i)) continue;
    carries.push_back(i);
    const Equation* first = pass_.def(operands_[i].outer, Op::full);
    const Aval& a = inner_aval(operands_[i]);
    if (first && !is_unset(*first) && (is_bool(a.dtype) || a.elements() > 1)) {
      inputs[next] = first->as<FullParams>().value.converted(a.dtype);
      any = true;
    }
    ++next;
  }
  if (!any) return false;
  const loop_parts::Numbers constant =
      loop_parts::constant_carries(g, carries.size(), std::move(inputs), loop_parts::most_levels);
  bool settled = false;
  for (std::size_t k = 0; k < carries.size(); ++k) {
    if (!constant[k]) continue;
    settle(results_[carries[k]], operands_[carries[k]].outer);
    stand_in_with_full(operands_[carries[k]], *constant[k]);
    settled = true;
  }
  return settled;
}

/// Carries that begin with one value and go on alike as long as they are alike.
bool ControlRewrite::merge_carries() {
  if (!is_loop()) return false;
  // Per carry: the first one that it is taken to equal; taken back where an iteration would tell
  // them apart.
  Vec<std::size_t> like(carries_);
  bool any = false;
  HashMap<Var, std::size_t> first;  // by the value before the loop
  for (std::size_t i = 0; i < carries_; ++i) {
    like[i] = is_carry(i) ? first.emplace(operands_[i].outer, i).entry->second : i;
    any = any || like[i] != i;
  }
  if (!any) return false;
  const GraphBody& g = step_body();
  Vec<Var> own(g.avals.size());
  for (std::size_t v = 0; v < own.size(); ++v) own[v] = static_cast<Var>(v);
  for (bool split = true; split;) {
    split = false;
    Vec<Var> numbers = own;
    for (std::size_t i = 0; i < carries_; ++i)
      if (is_carry(i)) numbers[operands_[i].inner[step()]] = operands_[like[i]].inner[step()];
    numbers = loop_parts::value_numbers(g, std::move(numbers));
    const auto next = [&](std::size_t i) { return numbers[results_[i].inner[0]]; };
    const Vec<std::size_t> before = like;
    // by what they were like, and the value after an iteration
    HashMap<std::uint64_t, std::size_t> told_apart;
    for (std::size_t i = 0; i < carries_; ++i) {
      if (before[i] == i || next(i) == next(before[i])) continue;
      split = true;
      like[i] =
          told_apart
              .emplace(std::uint64_t{before[i]} << 32 | static_cast<std::uint32_t>(next(i)), i)
              .entry->second;
    }
  }
  bool merged = false;
  for (std::size_t i = 0; i < carries_; ++i) {
    if (like[i] == i) continue;
    for (std::size_t b = 0; b < bodies_.size(); ++b)
      rename(b, operands_[i].inner[b], operands_[like[i]].inner[b]);
    operands_[i].role = Role::gone;
    if (results_[i].is_open()) {
      results_[like[i]].wanted = true;
      results_[i].same_as = static_cast<int>(like[i]);
    }
    merged = true;
  }
  return merged;
}

/// May the equation run once before the loop instead of in each iteration? Not what might never end
/// where the loop may have no iterations; nor derivative rules of the user's, which would see the
/// sum of all iterations' cotangents, and may be in recursive functions.
bool ControlRewrite::may_move(const Equation& e) const {
  if (keeps_order(e)) return false;
  const auto stays = [&](const Equation& inner) {
    return inner.op == Op::custom_jvp || inner.op == Op::custom_vjp ||
           inner.op == Op::custom_vmap || inner.op == Op::recursive_call ||
           (inner.op == Op::while_ && op_ == Op::while_);
  };
  return !stays(e) && none_of(bodies_of(e.params),
                              [&](const GraphRef& body) { return has_equation(*body, stays); });
}

bool ControlRewrite::move_out_of(std::size_t body) {
  const GraphBody& g = bodies_[body].get();
  Vec<bool> fixed(g.avals.size());             // the same in all iterations
  Vec<std::size_t> source(g.avals.size(), 0);  // bytes of the largest operand that it is made from
  GraphBody front;
  Vec<Var> outer;
  for (const Operand& o : operands_) {
    if (o.role != Role::rest || o.mapped) continue;
    const Var v = o.inner[body];
    fixed[v] = true;
    source[v] = g.aval(v).bytes();
    front.inputs.push_back(v);
    outer.push_back(o.outer);
  }
  Vec<bool> moves(g.equations.size());
  for (std::size_t k = 0; k < g.equations.size(); ++k) {
    const Equation& e = g.equations[k];
    if (!all_of(e.inputs, [&](Var v) { return fixed[v]; }) || !may_move(e)) continue;
    front.equations.push_back(e);
    std::size_t from = 0, made = 0;
    for (Var v : e.inputs) from = std::max(from, source[v]);
    for (Var v : e.outputs) {
      fixed[v] = true;
      source[v] = from;
      made += g.aval(v).bytes();
    }
    moves[k] = family_of(e.op) != Family::leaf && e.op != Op::broadcast_in_dim &&
               made <= std::max(from, loop_parts::small);
  }
  if (front.equations.empty()) return false;

  // What stays needs some of what moves; a scan's result that is the same in all iterations need
  // not be made there.
  Vec<bool> needed(g.avals.size());
  Vec<std::size_t> settled;
  for (Var v : g.outputs) needed[v] = true;
  if (op_ == Op::scan) {
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (!is_carry(i) && is_given(i) && fixed[results_[i].inner[0]]) settled.push_back(i);
    for (std::size_t i : settled) needed[results_[i].inner[0]] = false;
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (is_carry(i)) needed[results_[i].inner[0]] = true;
  }
  for (std::size_t k = g.equations.size(); k-- > 0;) {
    const Equation& e = g.equations[k];
    if (moves[k]) continue;
    if (!keeps_order(e) && none_of(e.outputs, [&](Var v) { return needed[v]; })) continue;
    for (Var v : e.inputs) needed[v] = true;
  }
  Vec<Var> moved;
  for (std::size_t k = 0; k < g.equations.size(); ++k)
    if (moves[k])
      for (Var v : g.equations[k].outputs)
        if (needed[v]) moved.push_back(v);
  if (moved.empty() && settled.empty()) return false;

  front.avals = g.avals;
  front.outputs = moved;
  for (std::size_t i : settled) front.outputs.push_back(results_[i].inner[0]);
  const Vec<Var> values = inlined(front, outer);
  for (std::size_t i = 0; i < settled.size(); ++i)
    settle(results_[settled[i]], with_first_axis(values[moved.size() + i], length_));
  for (std::size_t i = 0; i < moved.size(); ++i) {
    const Aval type = front.aval(moved[i]);
    Operand o{Role::rest, values[i], false, {}};
    for (std::size_t b = 0; b < bodies_.size(); ++b) o.inner.push_back(edit(b).fresh(type));
    rename(body, moved[i], o.inner[body]);
    ++pass_.uses_[values[i]];
    operands_.push_back(std::move(o));
  }
  return true;
}

bool ControlRewrite::move_out() {
  bool moved = false;
  for (std::size_t b = 0; is_loop() && b < bodies_.size(); ++b) moved = move_out_of(b) || moved;
  return moved;
}

}  // namespace vt::detail::simplification
