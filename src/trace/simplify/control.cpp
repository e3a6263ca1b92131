// Rewrites of cond, while, scan and checkpoint: takes the equation apart, runs what is decided in
// its place, and puts the rest together again.
#include "control.hpp"

#include <algorithm>
#include <memory>

#include <vt/detail/small_vec.hpp>

#include "../ir/sub_graph.hpp"

namespace vt::detail::simplification {

namespace control_parts {

constexpr int most_iterations = 16;

}  // namespace control_parts

// --- apart and together --------------------------------------------------------------------------

ControlRewrite::ControlRewrite(Pass& pass, const Equation& e, std::span<const Var> inputs,
                               Vec<bool> wanted)
    : pass_(pass), equation_(e), op_(e.op), where_(e.where) {
  for (GraphRef& body : bodies_of(e.params)) bodies_.push_back({std::move(body), nullptr, {}});
  carries_ = carries_of(e);
  if (op_ == Op::scan) length_ = e.as<ScanParams>().length;
  const Lanes* const lanes = lanes_of(e);
  if (lanes) lanes_ = lanes->count;
  const auto is_mapped = [&](std::size_t i) { return lanes && lanes->mapped[i]; };
  std::size_t first = 0;
  if (op_ == Op::cond) {
    index_ = inputs[0];
    index_mapped_ = is_mapped(0);
    first = 1;
  }
  for (std::size_t i = first; i < inputs.size(); ++i) {
    const std::size_t k = i - first;
    const Role role = k < carries_                     ? Role::carry
                      : k < carries_ + sequences_of(e) ? Role::sequence
                                                       : Role::rest;
    operands_.push_back({role, inputs[i], is_mapped(i), {}});
  }
  for (bool w : wanted) results_.push_back({w, {}});
  read_interfaces();
}

/// Operands in the order in which they are given: carries, sequences, the rest.
void ControlRewrite::read_interfaces() {
  for (Operand& o : operands_) o.inner.clear();
  for (Result& r : results_) r.inner.clear();
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    const GraphBody& g = bodies_[b].get();
    std::size_t next = 0;
    for (const Role role : {Role::carry, Role::sequence, Role::rest})
      for (Operand& o : operands_)
        if (o.role == role) o.inner.push_back(g.inputs[next++]);
    if (is_loop() && b != step()) continue;
    next = 0;
    // All results count here until the first simplification has dropped the dead ones.
    for (std::size_t i = 0; i < results_.size(); ++i)
      if (!changed_ || is_given(i)) results_[i].inner.push_back(g.outputs[next++]);
  }
}

void ControlRewrite::write_interfaces() {
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    GraphBody& g = edit(b);
    const Vec<Var>& renamed = bodies_[b].renamed;
    const auto now = [&](Var v) {
      return static_cast<std::size_t>(v) < renamed.size() ? renamed[v] : v;
    };
    if (!renamed.empty())
      for (Equation& e : g.equations)
        for (Var& v : e.inputs) v = now(v);
    g.inputs.clear();
    for (const Role role : {Role::carry, Role::sequence, Role::rest})
      for (const Operand& o : operands_)
        if (o.role == role) g.inputs.push_back(o.inner[b]);
    if (is_loop() && b != step()) {
      for (Var& v : g.outputs) v = now(v);
    } else {
      const std::size_t slot = is_loop() ? 0 : b;
      g.outputs.clear();
      for (std::size_t i = 0; i < results_.size(); ++i) {
        if (!is_given(i)) continue;
        results_[i].inner[slot] = now(results_[i].inner[slot]);
        g.outputs.push_back(results_[i].inner[slot]);
      }
    }
    bodies_[b].renamed.clear();
  }
}

GraphBody& ControlRewrite::edit(std::size_t body) {
  Body& b = bodies_[body];
  if (!b.own) b.own = std::make_shared<GraphBody>(*b.found);
  return *b.own;
}

void ControlRewrite::rename(std::size_t body, Var from, Var to) {
  Vec<Var>& renamed = bodies_[body].renamed;
  const std::size_t before = renamed.size(), count = edit(body).avals.size();
  renamed.resize(count);
  for (std::size_t i = before; i < count; ++i) renamed[i] = static_cast<Var>(i);
  renamed[from] = to;
}

void ControlRewrite::simplify_bodies() {
  for (Body& b : bodies_) {
    b.found = b.own ? pass_.simplified_body(std::move(*b.own)) : pass_.simplified_body(b.found);
    b.own.reset();
  }
  read_interfaces();
}

bool ControlRewrite::apply(Rule rule) {
  if (!(this->*rule)()) return false;
  changed_ = true;
  ++pass_.rewrites_;
  write_interfaces();
  return true;
}

SmallVec<Var, 2> ControlRewrite::run() {
  using C = ControlRewrite;
  apply(&C::drop_dead);
  const auto decide = [&] {
    const bool is = choose_branch() || unroll();
    pass_.rewrites_ += is;
    return is;
  };
  // Nothing is left of the equation, also where it has effects. Asked at first, too: a body that
  // takes the equation's place is walked anyway, and would be simplified at each level of nesting
  // once more.
  bool decided = decide();
  for (int iteration = 0; !decided && iteration < control_parts::most_iterations; ++iteration) {
    simplify_bodies();
    if ((decided = decide())) break;
    bool again = false;
    for (const Rule rule : {&C::merge_operands, &C::share_operands, &C::drop_lanes,
                            &C::settle_results, &C::merge_results, &C::settle_carries,
                            &C::merge_carries, &C::move_out, &C::drop_dead, &C::drop_operands})
      again = apply(rule) || again;
    if (!again) break;
  }
  if (!decided) place();
  SmallVec<Var, 2> values;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    const Result* r = &results_[i];
    while (r->same_as >= 0) r = &results_[r->same_as];
    values.push_back(r->value);
  }
  return values;
}

void ControlRewrite::place() {
  Vec<std::size_t> given;
  for (std::size_t i = 0; i < results_.size(); ++i)
    if (is_given(i)) given.push_back(i);
  if (given.empty() && !keeps_order(equation_)) return;
  for (Body& b : bodies_)
    if (b.own) b.found = std::move(b.own);

  Vec<Var> inputs;
  Lanes lanes;
  lanes.count = lanes_;
  if (op_ == Op::cond) lanes.extents = equation_.as<CondParams>().lanes.extents;
  if (op_ == Op::while_) lanes.extents = equation_.as<WhileParams>().lanes.extents;
  const auto add = [&](Var v, bool mapped) {
    inputs.push_back(v);
    if (lanes) lanes.mapped.push_back(mapped);
  };
  if (op_ == Op::cond) add(index_, index_mapped_);
  int carries = 0, sequences = 0;
  for (const Role role : {Role::carry, Role::sequence, Role::rest}) {
    for (const Operand& o : operands_) {
      if (o.role != role) continue;
      add(o.outer, o.mapped);
      carries += role == Role::carry;
      sequences += role == Role::sequence;
    }
  }
  ParamsRef params;
  if (op_ == Op::cond) {
    CondParams p;
    for (const Body& b : bodies_) p.branches.push_back(b.found);
    p.lanes = std::move(lanes);
    params = make_params(std::move(p));
  } else if (op_ == Op::while_) {
    WhileParams p = equation_.as<WhileParams>();
    p.condition = bodies_[0].found;
    p.body = bodies_[1].found;
    p.carries = carries;
    p.lanes = std::move(lanes);
    params = make_params(std::move(p));
  } else if (op_ == Op::scan) {
    ScanParams p = equation_.as<ScanParams>();
    p.body = bodies_[0].found;
    p.carries = carries;
    p.sequences = sequences;
    params = make_params(std::move(p));
  } else {
    CallParams p = equation_.as<CallParams>();
    p.body = bodies_[0].found;
    p.explicit_operands = static_cast<int>(inputs.size());
    params = make_params(std::move(p));
  }
  pass_.where_ = where_;
  const SmallVec<Var, 1> placed = pass_.emit_all(op_, std::move(params), inputs);
  for (std::size_t k = 0; k < given.size(); ++k) settle(results_[given[k]], placed[k]);
}

void ControlRewrite::settle(Result& r, Var value) {
  if (r.is_open()) r.value = restacked_ < 0 ? value : with_first_axis(value, restacked_);
}

// --- what is decided -----------------------------------------------------------------------------

Vec<Var> ControlRewrite::inlined(const GraphBody& body, std::span<const Var> inputs) {
  Vec<Var> results = pass_.inlined(body, inputs);
  pass_.where_ = where_;
  return results;
}

/// Runs a body in place of the equation: its results are the equation's.
void ControlRewrite::finish_with(std::size_t body, std::span<const Var> inputs) {
  const Vec<Var> values = inlined(bodies_[body].get(), inputs);
  std::size_t next = 0;
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (!is_given(i)) continue;
    const Var value = values[next++];
    settle(results_[i], op_ == Op::scan && !is_carry(i) ? with_first_axis(value, 1) : value);
  }
  for (Operand& o : operands_) o.role = Role::gone;
}

/// The branch of a known index, of a choice among one, or of branches that are all the same. Lanes
/// each run it by themselves: for those it becomes a choice among one.
bool ControlRewrite::choose_branch() {
  if (op_ != Op::cond) return false;
  std::size_t chosen = 0;
  bool known = all_of(bodies_, [&](const Body& b) { return equal(b.get(), bodies_[0].get()); });
  if (!known && !index_mapped_) {
    const auto clamped = [&](std::int64_t index) {
      chosen = static_cast<std::size_t>(
          std::clamp<std::int64_t>(index, 0, static_cast<std::int64_t>(bodies_.size()) - 1));
    };
    if (const Scalar* s = pass_.full_value(index_)) {
      known = true;
      clamped(s->integer);
    } else if (const Equation* e = pass_.def(index_, Op::constant)) {
      known = true;
      clamped(*e->as<ConstantParams>().buffer->as<const std::int32_t>());
    }
  }
  if (!known) return false;
  if (lanes_ < 0) {
    Vec<Var> inputs;
    for (const Operand& o : operands_)
      if (o.role != Role::gone) inputs.push_back(o.outer);
    finish_with(chosen, inputs);
    return true;
  }
  if (bodies_.size() > 1) {
    bodies_ = {bodies_[chosen]};
    changed_ = true;
    ++pass_.rewrites_;
    read_interfaces();
  }
  if (index_mapped_ || !pass_.is_full_of(index_, 0)) {
    index_ = pass_.full_like(0, Aval(DType::i32, Shape{}));
    index_mapped_ = false;
    ++pass_.rewrites_;
  }
  return false;
}

/// Loops of no iterations, and scans of one.
bool ControlRewrite::unroll() {
  using namespace control_parts;
  if (!is_loop() || (op_ == Op::scan && length_ > 1)) return false;
  if (op_ == Op::while_) {
    if (!is_false_at_first()) return false;
  } else if (length_ == 1) {
    Vec<Var> inputs;
    for (const Role role : {Role::carry, Role::sequence, Role::rest})
      for (const Operand& o : operands_)
        if (o.role == role)
          inputs.push_back(role == Role::sequence
                               ? pass_.reshape(o.outer, without_axis(pass_.aval(o.outer)).shape)
                               : o.outer);
    finish_with(0, inputs);
    return true;
  }
  for (std::size_t i = 0; i < results_.size(); ++i) {
    if (results_[i].is_open())
      settle(results_[i], is_carry(i) ? operands_[i].outer
                                      : pass_.full_like(0, with_axis(inner_aval(results_[i]), 0)));
  }
  for (Operand& o : operands_) o.role = Role::gone;
  return true;
}

/// Is a while's condition false before the first iteration? Asked only where all that it looks at
/// is known.
bool ControlRewrite::is_false_at_first() {
  const GraphBody& g = bodies_[0].get();
  for (const Equation& e : g.equations)
    if (family_of(e.op) == Family::structure || keeps_order(e)) return false;
  Vec<bool> live(g.avals.size());
  live[g.outputs[0]] = true;
  pass_.memo_.liveness.propagate(g, live);
  Vec<Var> inputs;
  for (const Role role : {Role::carry, Role::rest}) {
    for (const Operand& o : operands_) {
      if (o.role != role) continue;
      inputs.push_back(o.outer);  // whatever it is where the condition does not look
      if (!live[o.inner[0]]) continue;
      if (const Scalar* s = pass_.full_value(o.outer))
        inputs.back() = pass_.full(*s, inner_aval(o));
      else if (o.mapped || !pass_.def(o.outer, Op::constant)) return false;
    }
  }
  const Var value = inlined(g, inputs)[0];
  return pass_.is_full_of(value, 0);
}

}  // namespace vt::detail::simplification
