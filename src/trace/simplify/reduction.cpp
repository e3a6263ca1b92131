// Rewrite rules of reductions, scans along an axis and products: they look through views and
// broadcasts of their operands.
#include <algorithm>
#include <cmath>

#include "../ir/axis_map.hpp"
#include "simplify.hpp"

namespace vt::detail::simplification {

namespace reducing {

Var reduce(Pass& p, Op op, Var x, Axes axes) {
  return p.emit(op, make_params(AxesParams{std::move(axes)}), {x});
}

/// The reduction of one element: itself, but a sum starts from 0.0, which takes the sign from −0.0.
Var of_one_element(Pass& p, Op op, Var x) {
  if (!is_inexact(p.dtype(x)) || (op != Op::reduce_sum && op != Op::cumsum)) return x;
  return p.emit(Op::add, {x, p.full_like(0, Aval(p.dtype(x), Shape{}, p.aval(x).weak))});
}

Var of_full(Pass& p, const Candidate& c, const Scalar& value, std::int64_t count) {
  if (is_complex(value.dtype)) return Pass::none;
  const double number = value.to_double();
  if (reduction_facts[c.op].idempotent) return count > 0 ? p.full(value, c.aval) : Pass::none;
  switch (c.op) {
    case Op::reduce_prod: return number == 1 ? p.full(value, c.aval) : Pass::none;
    case Op::reduce_sum: {
      // Exact as long as doubles hold every partial sum.
      const double sum = number * static_cast<double>(count);
      if (number != std::trunc(number) || std::fabs(sum) > 0x1p53) return Pass::none;
      const Scalar rounded = Scalar(sum + 0.0).converted(c.aval.dtype);
      return is_float(value.dtype) || rounded.to_double() == sum ? p.full(rounded, c.aval)
                                                                 : Pass::none;
    }
    default: return Pass::none;
  }
}

Var of_transpose(Pass& p, const Candidate& c, const Axes& axes, const Equation& e) {
  const Axes& permutation = e.as<PermutationParams>().permutation;
  Axes reduced, kept;
  for (int axis = 0; axis < static_cast<int>(permutation.size()); ++axis)
    (axes.contains(axis) ? reduced : kept).push_back(permutation[axis]);
  if (!is_increasing(reduced) && is_inexact(c.aval.dtype)) return Pass::none;
  insertion_sort(reduced);
  // The kept axes come out in the order they have in the operand: result axis i is the one of rank
  // kept[i] among them.
  const Axes back = inverse(sorting_permutation(kept));
  return p.transpose(reduce(p, c.op, e.inputs[0], reduced), back);
}

Var of_reshape(Pass& p, const Candidate& c, const Axes& axes, const Equation& e) {
  const auto map = unit_axis_map(p.shape(e.inputs[0]), p.shape(e.outputs[0]));
  if (!map) return Pass::none;
  Axes reduced;
  for (std::size_t i = 0; i < map->size(); ++i)
    if ((*map)[i] >= 0 && axes.contains((*map)[i])) reduced.push_back(static_cast<int>(i));
  return p.reshape(reduce(p, c.op, e.inputs[0], reduced), c.aval.shape);
}

Var of_broadcast(Pass& p, const Candidate& c, const Axes& axes, const Equation& e) {
  const Var inner = e.inputs[0];
  const Axes& places = e.as<BroadcastParams>().axes;
  const Shape& shape = p.shape(e.outputs[0]);
  if (p.aval(e.outputs[0]).elements() == 0) return Pass::none;
  Axes reduced, own;  // of the operand; `own`: result axes that the operand fills by itself
  for (std::size_t k = 0; k < places.size(); ++k) {
    if (axes.contains(places[k])) reduced.push_back(static_cast<int>(k));
    if (p.shape(inner)[k] == shape[places[k]]) own.push_back(places[k]);
  }
  for (int axis : axes)
    if (!own.contains(axis) && shape[axis] != 1 && !reduction_facts[c.op].idempotent)
      return Pass::none;
  Axes kept;  // of the result
  for (int place : places) {
    if (axes.contains(place)) continue;
    kept.push_back(place -
                   static_cast<int>(count_if(axes, [&](int axis) { return axis < place; })));
  }
  return p.broadcast(reduce(p, c.op, inner, reduced), c.aval.shape, kept);
}

Var reduction(Pass& p, const Candidate& c) {
  const Axes& axes = c.as<AxesParams>().axes;
  const Var x = c.in();
  const Shape& shape = p.shape(x);
  const bool one_element = all_of(axes, [&](int axis) { return shape[axis] == 1; });
  if (one_element) return of_one_element(p, c.op, p.reshape(x, c.aval.shape));
  // Of no elements. Kernels need not be ready for it: what no iteration changes is loaded in front
  // of a loop, and here there is nothing to load.
  const Neutral neutral = reduction_facts[c.op].neutral;
  if (p.aval(x).elements() == 0 && (neutral == Neutral::zero || neutral == Neutral::one))
    return p.full_like(neutral == Neutral::one, c.aval);
  const Equation* e = p.def(x);
  if (!e) return Pass::none;
  switch (e->op) {
    case Op::full: {
      std::int64_t count = 1;
      for (int axis : axes) count *= shape[axis];
      return of_full(p, c, e->as<FullParams>().value, count);
    }
    case Op::transpose: return of_transpose(p, c, axes, *e);
    case Op::reshape: return of_reshape(p, c, axes, *e);
    case Op::broadcast_in_dim: return of_broadcast(p, c, axes, *e);
    default: return Pass::none;
  }
}

Var cumulative(Pass& p, const Candidate& c) {
  const std::size_t axis = c.as<CumulativeParams>().axis;
  if (c.op == Op::cumlogsumexp || p.shape(c.in())[axis] > 1) return Pass::none;
  return of_one_element(p, c.op, c.in());
}

}  // namespace reducing

Var simplify_reduction(Pass& p, const Candidate& c) {
  switch (c.op) {
    case Op::reduce: return Pass::none;  // the user's function may do anything
    case Op::argmax:
    case Op::argmin:
      return p.shape(c.in())[c.as<ArgParams>().axis] == 1 ? p.full_like(0, c.aval) : Pass::none;
    case Op::cumsum:
    case Op::cumprod:
    case Op::cummax:
    case Op::cummin:
    case Op::cumlogsumexp: return reducing::cumulative(p, c);
    default: return reducing::reduction(p, c);
  }
}

// --- products ------------------------------------------------------------------------------------

namespace products {

/// If operand `i` is a transpose whose free axes keep their order, reads through it.
bool look_through_transpose(const Pass& p, Var& operand, Axes& contract, Axes& batch) {
  const Equation* e = p.def(operand, Op::transpose);
  if (!e) return false;
  const Axes& permutation = e->as<PermutationParams>().permutation;
  Axes free;
  for (int axis = 0; axis < static_cast<int>(permutation.size()); ++axis)
    if (!contract.contains(axis) && !batch.contains(axis)) free.push_back(permutation[axis]);
  if (!is_increasing(free)) return false;
  for (int& axis : contract) axis = permutation[axis];
  for (int& axis : batch) axis = permutation[axis];
  operand = e->inputs[0];
  return true;
}

}  // namespace products

Var simplify_dot(Pass& p, const Candidate& c) {
  DotParams d = c.as<DotParams>();
  Var a = c.in(0), b = c.in(1);
  for (int axis : d.lhs_contract)
    if (p.shape(a)[axis] == 0) return p.full_like(0, c.aval);
  const bool left = products::look_through_transpose(p, a, d.lhs_contract, d.lhs_batch);
  const bool right = products::look_through_transpose(p, b, d.rhs_contract, d.rhs_batch);
  return left || right ? p.emit(Op::dot_general, make_params(std::move(d)), {a, b}) : Pass::none;
}

}  // namespace vt::detail::simplification
