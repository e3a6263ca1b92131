// Rewrites of cond, while, scan and checkpoint by what is known of operands and results:
// duplicates, values shared by all lanes or iterations, numbers, results that are only passed
// through.
#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "control.hpp"

namespace vt::detail::simplification {

namespace control_known {

/// Per Var: what every element of it is, if it is a `full`.
inline Vec<const Scalar*> full_values(const GraphBody& g) {
  Vec<const Scalar*> values(g.avals.size(), nullptr);
  for (const Equation& e : g.equations)
    if (e.op == Op::full) values[e.outputs[0]] = &e.as<FullParams>().value;
  return values;
}

}  // namespace control_known

// --- what is known of operands -------------------------------------------------------------------

/// One operand given twice is one.
bool ControlRewrite::merge_operands() {
  bool merged = false;
  HashMap<Var, SmallVec<int, 2>> given;  // by the outer value: operands that differ in their role
  for (std::size_t j = 0; j < operands_.size(); ++j) {
    Operand& o = operands_[j];
    if (o.role != Role::sequence && o.role != Role::rest) continue;
    SmallVec<int, 2>& same = given[o.outer];
    const auto* i = std::find_if(same.begin(), same.end(), [&](int k) {
      const Operand& first = operands_[k];
      return first.role == o.role && first.mapped == o.mapped;
    });
    if (i == same.end()) {
      same.push_back(static_cast<int>(j));
      continue;
    }
    const Operand& first = operands_[*i];
    for (std::size_t b = 0; b < bodies_.size(); ++b) rename(b, o.inner[b], first.inner[b]);
    o.role = Role::gone;
    merged = true;
  }
  return merged;
}

/// The value without axis 0 if it is the same along it.
Var ControlRewrite::without_first_axis(Var v) {
  const Aval one = control_parts::without_axis(pass_.aval(v));
  if (const Equation* e = pass_.def(v, Op::full)) return pass_.full(*e, one);
  const Equation* e = pass_.def(v, Op::broadcast_in_dim);
  if (!e) return Pass::none;
  Axes axes = e->as<BroadcastParams>().axes;
  Var source = e->inputs[0];
  if (axes.contains(0)) {
    if (pass_.shape(source)[0] != 1) return Pass::none;
    source = pass_.reshape(source, control_parts::without_axis(pass_.aval(source)).shape);
    axes.erase(axes.begin());
  }
  for (int& axis : axes) --axis;
  return pass_.broadcast(source, one.shape, axes);
}

Var ControlRewrite::with_first_axis(Var v, std::int64_t count) {
  const Aval all = control_parts::with_axis(pass_.aval(v), count);
  if (const Equation* e = pass_.def(v, Op::full)) return pass_.full(*e, all);
  Axes axes;
  for (int i = 1; i < static_cast<int>(all.shape.size()); ++i) axes.push_back(i);
  return pass_.broadcast(v, all.shape, axes);
}

/// The operand is a number: the bodies may know it.
void ControlRewrite::stand_in_with_full(Operand& o, const Scalar& value) {
  for (std::size_t b = 0; b < bodies_.size(); ++b) {
    GraphBody& g = edit(b);
    Equation e;
    e.op = Op::full;
    e.where = where_;
    e.params = make_params(FullParams{value, g.aval(o.inner[b])});
    e.outputs.push_back(o.inner[b]);
    g.equations.insert(g.equations.begin(), std::move(e));
  }
  o.role = Role::gone;
}

/// Numbers go into the bodies; what is the same for all lanes or all iterations becomes an operand
/// that they share.
bool ControlRewrite::share_operands() {
  bool shared = false;
  if (index_mapped_) {
    if (const Var one = without_first_axis(index_); one != Pass::none) {
      index_ = one;
      index_mapped_ = false;
      shared = true;
    }
  }
  for (Operand& o : operands_) {
    if (o.role != Role::sequence && o.role != Role::rest) continue;
    if (const Scalar* s = pass_.full_value(o.outer)) {
      stand_in_with_full(o, *s);
      shared = true;
    } else if (o.mapped || o.role == Role::sequence) {
      const Var one = without_first_axis(o.outer);
      if (one == Pass::none) continue;
      o.outer = one;
      o.role = Role::rest;
      o.mapped = false;
      shared = true;
    }
  }
  return shared;
}

/// Lanes that all do the same are one.
bool ControlRewrite::drop_lanes() {
  if (lanes_ < 1 || index_mapped_ || keeps_order(equation_)) return false;
  for (const Operand& o : operands_) {
    if (o.role == Role::rest && o.mapped) return false;
    if (o.role == Role::carry && !pass_.full_value(o.outer) &&
        !pass_.def(o.outer, Op::broadcast_in_dim))
      return false;
  }
  Vec<Var> shared;
  for (const Operand& o : operands_) {
    shared.push_back(o.role == Role::carry ? without_first_axis(o.outer) : o.outer);
    if (o.role != Role::gone && shared.back() == Pass::none) return false;
  }
  for (std::size_t i = 0; i < operands_.size(); ++i) {
    operands_[i].outer = shared[i];
    operands_[i].mapped = false;
  }
  restacked_ = lanes_;
  lanes_ = -1;
  return true;
}

// --- what is known of results --------------------------------------------------------------------

/// Finds results that are an operand, or a number, whatever the bodies do.
bool ControlRewrite::settle_results() {
  using namespace control_parts;
  bool settled = false;
  Vec<Vec<const Scalar*>> numbers;
  for (std::size_t b = is_loop() ? step() : 0; b < bodies_.size(); ++b)
    numbers.push_back(control_known::full_values(bodies_[b].get()));
  for (std::size_t i = 0; i < results_.size(); ++i) {
    Result& r = results_[i];
    if (!is_given(i)) continue;
    const auto number_of = [&](std::size_t k) { return numbers[k][r.inner[k]]; };
    const Scalar* number = number_of(0);
    if (is_carry(i)) {
      Operand& o = operands_[i];
      const bool any_number = pass_.is_any_number(o.outer);
      const Scalar* first = number && !any_number ? pass_.full_value(o.outer) : nullptr;
      if (r.inner[0] != o.inner[step()] && !(first && *first == *number)) continue;
      settle(r, o.outer);
      o.role = Role::rest;  // it never changes
      settled = true;
      continue;
    }
    for (std::size_t k = 1; number && k < r.inner.size(); ++k) {
      if (!number_of(k) || !(*number_of(k) == *number)) number = nullptr;
    }
    const std::int64_t count = is_loop() ? length_ : lanes_;
    if (number) {
      settle(r, pass_.full(*number, count < 0 ? inner_aval(r) : with_axis(inner_aval(r), count)));
      settled = true;
      continue;
    }
    for (const Operand& o : operands_) {
      if (o.role != Role::sequence && o.role != Role::rest) continue;
      bool passed = true;
      for (std::size_t k = 0; k < r.inner.size(); ++k)
        passed = passed && r.inner[k] == o.inner[is_loop() ? step() : k];
      if (!passed) continue;
      settle(r, o.role == Role::sequence || o.mapped || count < 0
                    ? o.outer
                    : with_first_axis(o.outer, count));
      settled = true;
      break;
    }
  }
  return settled;
}

/// Results that all bodies make the same are one.
bool ControlRewrite::merge_results() {
  if (op_ == Op::while_) return false;
  bool merged = false;
  HashMap<Var, SmallVec<int, 2>> given;  // by the value in the first body
  for (std::size_t j = 0; j < results_.size(); ++j) {
    if (!is_given(j)) continue;
    Result& r = results_[j];
    SmallVec<int, 2>& alike = given[r.inner[0]];
    const int* first =
        !r.is_open() ? alike.end() : std::find_if(alike.begin(), alike.end(), [&](int i) {
          const std::size_t k = i;
          return is_carry(k) == is_carry(j) && results_[k].inner == r.inner;
        });
    if (first != alike.end()) {
      results_[*first].wanted = true;
      r.same_as = *first;
      merged = true;
    } else if (r.same_as < 0 && r.value == Pass::none) {
      alike.push_back(static_cast<int>(j));
    }
  }
  return merged;
}

}  // namespace vt::detail::simplification
