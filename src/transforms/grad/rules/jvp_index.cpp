// jvp rules of ops that move elements, and of the scatters.
#include "../build.hpp"
#include "../jvp.hpp"

namespace vt::detail::jvp_rules {

/// Linear in operand 0; the others are indices or none.
Tensor same_op(const JvpCall& c) {
  SmallVec<Tensor, 4> operands(c.x.begin(), c.x.end());
  operands[0] = c.t[0];
  return emit(c.equation.op, c.equation.params,
              std::span<const Tensor>(operands.data(), operands.size()), {});
}

/// Only of operands that have a tangent: rows of others are zeros.
Tensor tangent_rows(const JvpCall& c) {
  RowsParams p = c.as<RowsParams>();
  std::vector<Tensor> operands;
  Vec<int> places;
  for (const Tensor& t : c.t) {
    places.push_back(t.defined() ? static_cast<int>(operands.size()) : -1);
    if (t.defined()) operands.push_back(t);
  }
  for (RowRun& run : p.runs)
    if (run.operand >= 0) run.operand = places[static_cast<std::size_t>(run.operand)];
  return emit(Op::rows, make_params(std::move(p)), operands, {});
}

void rows_add(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  const Equation& e = c.equation;
  for (Tensor& t : emit_all(e.op, e.params, {&c.x[0], 1}, e.where)) results.push_back(std::move(t));
  tangents.clear();
  for (Tensor& t : emit_all(e.op, e.params, {&c.t[0], 1}, e.where))
    tangents.push_back(std::move(t));
}

/// Linear in all float operands jointly: missing tangents are zeros of the operand's shape.
Tensor with_zeros(const JvpCall& c) {
  SmallVec<Tensor, 4> operands(c.x.begin(), c.x.end());
  for (std::size_t i = 0; i < operands.size(); ++i)
    if (is_inexact(operands[i].dtype()))
      operands[i] = c.has(i) ? c.t[i] : grad_build::zeros_like(c.x[i]);
  return emit(c.equation.op, c.equation.params,
              std::span<const Tensor>(operands.data(), operands.size()), {});
}

Tensor met_by_updates(const ScatterParams& p, const Tensor& operand, const Tensor& indices,
                      const Shape& updates) {
  const Shape& shape = operand.shape();
  // no window fits in it
  if (shape.elements() == 0) return grad_build::zeros(Aval(operand.dtype(), updates));
  return emit(Op::gather, make_params(gather_of(p, shape, updates)), {operand, indices}, {});
}

namespace scatter_parts {
using namespace grad_build;

inline Tensor scattered(Op op, const JvpCall& c, const Tensor& operand, const Tensor& updates) {
  return emit(op, c.equation.params, {operand, c.x[1], updates}, {});
}
inline Tensor gathered(const JvpCall& c, const Tensor& operand) {
  return met_by_updates(c.as<ScatterParams>(), operand, c.x[1], c.x[2].shape());
}
}  // namespace scatter_parts

// The factor of an update is the operand times all other updates of the same element. With several
// updates of one element it is the product of the nonzero ones over its own, with zeros counted
// apart, so that zeros give no 0/0. (The second derivative between two updates of one element that
// are both exactly zero is the one case that this form gets as 0.)
Tensor scatter_mul(const JvpCall& c) {
  using namespace scatter_parts;
  Tensor sum;
  if (c.has(0)) sum = scattered(Op::scatter_mul, c, c.t[0], c.x[2]);
  if (!c.has(2)) return sum;
  const DType d = c.y.dtype();
  const Tensor zero = scalar(d, 0), one = scalar(d, 1);
  Val factor = gathered(c, c.x[0]);
  if (!c.as<ScatterParams>().unique && !is_one_update(c.as<ScatterParams>(), c.x[1].shape())) {
    const Val update = c.x[2];
    const Tensor is_zero = binary(Op::eq, update, zero);
    const Val nonzero = choose(is_zero, one, update);
    const Tensor zeros_met =
        gathered(c, scattered(Op::scatter_add, c, zeros_like(c.x[0]), convert_to(is_zero, d)));
    const Val product =
        gathered(c, scattered(Op::scatter_mul, c, filled(aval_of(c.x[0]), 1), nonzero));
    const Tensor others_nonzero = binary(Op::eq, zeros_met, convert_to(is_zero, d));
    factor = factor * Val(choose(others_nonzero, product / nonzero, zero));
  }
  return sum_of(sum, scattered(Op::scatter_add, c, zeros_like(c.x[0]), Val(c.t[2]) * factor));
}

// All that equal the result share its tangent: the operand's element and updates alike.
Tensor scatter_extremum(const JvpCall& c) {
  using namespace scatter_parts;
  const DType d = c.y.dtype();
  const Val operand_wins = convert_to(binary(Op::eq, c.x[0], c.y), d);
  const Val update_wins = convert_to(binary(Op::eq, c.x[2], gathered(c, c.y)), d);
  const Val winners = scattered(Op::scatter_add, c, operand_wins, update_wins);
  Tensor sum;
  if (c.has(0)) sum = Val(c.t[0]) * (operand_wins / winners);
  if (c.has(2)) {
    // An update that was dropped met nobody; 1 keeps its (unused) share finite.
    const Tensor met = gathered(c, winners);
    const Val share =
        update_wins / Val(choose(binary(Op::gt, met, scalar(d, 0)), met, scalar(d, 1)));
    sum = sum_of(sum, scattered(Op::scatter_add, c, zeros_like(c.x[0]), Val(c.t[2]) * share));
  }
  return sum;
}

}  // namespace vt::detail::jvp_rules
