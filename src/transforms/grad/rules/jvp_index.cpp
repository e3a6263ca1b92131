// jvp rules of ops that move elements, and of the scatters.
#include <algorithm>

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
    if (run.operand >= 0) run.operand = places[run.operand];
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

namespace products_of_others {
using namespace grad_build;

/// Rows of a matrix at `places`.
inline Tensor rows_at(const Tensor& x, const Tensor& places) {
  GatherParams g;
  g.offset_dims = Axes(1);
  g.collapsed_slice_dims = g.start_index_map = Axes(0);
  g.slice_sizes = Shape{1, x.shape()[1]};
  g.mode = IndexMode::clip;
  return emit(Op::gather, make_params(std::move(g)),
              {x, with_shape(places, Shape{places.shape()[0], 1})}, {});
}

inline Tensor inverse_of(const Tensor& order, const Tensor& places) {
  ScatterParams s;
  s.inserted_window_dims = s.scatter_dims_to_operand_dims = Axes(0);
  s.unique = true;
  const Shape vectors{order.shape()[0], 1};
  return emit(Op::scatter, make_params(std::move(s)),
              {zeros_like(order), with_shape(order, vectors), places}, {});
}

/// For each row the product of `count` rows on one side of it: of at most 1, 2, 4 … of them.
inline Val product_beside(const Val& x, const Tensor& count, int side) {
  const Shape& shape = x.t.shape();
  const Tensor one = scalar(x.t.dtype(), 1);
  const auto at_distance = [&](const Tensor& t, std::int64_t n) {
    const Tensor has = binary(Op::ge, count, scalar(count.dtype(), static_cast<double>(n)));
    return Val(choose(in_dim(has, shape, Axes(0)), shifted(t, 0, side * n, 1), one));
  };
  Val product = at_distance(x, 1);
  for (std::int64_t n = 1; n + 1 < shape[0]; n *= 2) product = product * at_distance(product, n);
  return product;
}

/// The product of all other updates of the element that an update meets. Sorting brings updates of
/// one element together, and products go over them from both sides, as in reduce_prod: nothing is
/// divided by, so that zeros, infinities and further derivatives come out right.
Tensor of_updates(const JvpCall& c) {
  const auto& p = c.as<ScatterParams>();
  const Shape &shape = c.x[0].shape(), &updates = c.x[2].shape();
  // Windows that fill their axes meet as a whole; others meet element by element.
  const Shape window = gather_of(p, shape, updates).slice_sizes;
  bool filling = true;
  for (int d = 0; d < shape.rank(); ++d)
    filling = filling && (window[d] == shape[d] || p.inserted_window_dims.contains(d) ||
                          p.operand_batching_dims.contains(d));
  const std::int64_t width = filling ? window.elements() : 1, n = updates.elements() / width;
  Axes windows_last = other_axes(updates.rank(), p.update_window_dims);
  for (int d : p.update_window_dims) windows_last.push_back(d);
  Axes back = windows_last;
  Shape as_windows = updates;
  for (std::size_t i = 0; i < windows_last.size(); ++i) {
    back[windows_last[i]] = static_cast<int>(i);
    as_windows[i] = updates[windows_last[i]];
  }
  const auto rows = [&](const Tensor& t) {
    return with_shape(permuted(t, windows_last), Shape{n, width});
  };

  const DType index = index_type(std::max(shape.elements() + 1, n));
  const Tensor zero = scalar(index, 0), place = index_along(index, Shape{n}, 0);
  // 1, 2, …; updates that are dropped meet 0
  const Val names = Val(index_along(index, Shape{shape.elements()}, 0)) + 1.0;
  const Tensor met = met_by_updates(p, with_shape(names, shape), c.x[1], updates);
  const SmallVec<Tensor, 1> sorted =
      emit_all(Op::sort, make_params(SortParams{0, 1, false, 0, n}),
               {{with_shape(slice_axis(rows(met), 1, 0, 1), Shape{n}), place}}, {});
  const Tensor &name = sorted[0], &order = sorted[1];
  const auto ends = [&](int side, Op nearest, double none) {
    const Tensor is_end = binary(Op::ne, name, shifted(name, 0, side, -1));
    return Val(cumulate(nearest, choose(is_end, place, scalar(index, none)), 0, side < 0));
  };
  const auto of_element = [&](const Val& count) {
    return choose(binary(Op::eq, name, zero), zero, count);
  };
  const Tensor before = of_element(Val(place) - ends(1, Op::cummax, 0)),
               behind = of_element(ends(-1, Op::cummin, static_cast<double>(n)) - Val(place));
  const Tensor update = rows_at(rows(c.x[2]), order);
  const Tensor product = product_beside(update, before, 1) * product_beside(update, behind, -1);
  return permuted(with_shape(rows_at(product, inverse_of(order, place)), as_windows), back);
}
}  // namespace products_of_others

// The factor of an update is the operand times all other updates of the same element.
Tensor scatter_mul(const JvpCall& c) {
  using namespace scatter_parts;
  Tensor sum;
  if (c.has(0)) sum = scattered(Op::scatter_mul, c, c.t[0], c.x[2]);
  if (!c.has(2) || c.x[2].size() == 0) return sum;
  Val factor = gathered(c, c.x[0]);
  if (!c.as<ScatterParams>().unique && !is_one_update(c.as<ScatterParams>(), c.x[1].shape()))
    factor = factor * Val(products_of_others::of_updates(c));
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
