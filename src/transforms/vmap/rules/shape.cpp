// Batch rules of the shape ops: the lanes stay where they are whenever the op allows it.
#include <algorithm>

#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace shape_batch {

BatchedList one(Tensor value, int axis) {
  BatchedList results;
  results.push_back({std::move(value), axis});
  return results;
}

// Axes [0, i) of `from` hold as many elements as the axes [0, result) of `to`, and the rest too; −1
// if no place in `to` does.
int same_place(const Shape& from, int i, const Shape& to) {
  std::int64_t before = 1, after = 1, seen = 1, rest = 1;
  for (int k = 0; k < from.rank(); ++k) (k < i ? before : after) *= from[k];
  for (int j = 0; j <= to.rank(); ++j) {
    rest = 1;
    for (int k = j; k < to.rank(); ++k) rest *= to[k];
    if (seen == before && rest == after) return j;
    if (j < to.rank()) seen *= to[j];
  }
  return -1;
}

}  // namespace shape_batch

BatchedList reshape(const BatchCall& c) {
  const Batched& x = c.operands[0];
  const Shape& to = c.as<ShapeParams>().shape;
  int axis = shape_batch::same_place(c.operand_aval(0).shape, *x.axis, to);
  Tensor value = x.value;
  if (axis < 0) {
    value = lanes::moved(value, *x.axis, 0, c.where());
    axis = 0;
  }
  return shape_batch::one(
      emit(Op::reshape, make_params(ShapeParams{lanes::inserted(to, axis, c.lanes)}), {value},
           c.where()),
      axis);
}

BatchedList transpose(const BatchCall& c) {
  const Batched& x = c.operands[0];
  Axes permutation = lanes::shifted(c.as<PermutationParams>().permutation, *x.axis);
  permutation.insert(permutation.begin() + *x.axis, *x.axis);
  return shape_batch::one(
      emit(Op::transpose, make_params(PermutationParams{permutation}), {x.value}, c.where()),
      *x.axis);
}

BatchedList broadcast_in_dim(const BatchCall& c) {
  const auto& p = c.as<BroadcastParams>();
  BatchedList results;
  results.push_back(lanes::broadcast(c.operands[0], p.shape, p.axes, c.where()));
  return results;
}

BatchedList concatenate(const BatchCall& c) {
  // The lane axis that most elements already have; of equals, that of the first.
  SmallVec<int, 4> axes;
  SmallVec<std::int64_t, 4> elements;  // that have it
  for (const Batched& x : c.operands) {
    if (!x.axis) continue;
    const std::size_t at = std::find(axes.begin(), axes.end(), *x.axis) - axes.begin();
    if (at == axes.size()) {
      axes.push_back(*x.axis);
      elements.push_back(0);
    }
    elements[at] += x.value.size();
  }
  const int axis = axes[std::max_element(elements.begin(), elements.end()) - elements.begin()];
  std::vector<Tensor> parts;
  parts.reserve(c.operands.size());
  for (const Batched& x : c.operands) parts.push_back(lanes::at_axis(x, axis, c.lanes, c.where()));
  const int along = lanes::shifted(c.as<AxisParams>().axis, axis);
  return shape_batch::one(emit(Op::concatenate, make_params(AxisParams{along}), parts, c.where()),
                          axis);
}

BatchedList pad(const BatchCall& c) {
  const Batched& x = c.operands[0];
  const auto& lane = c.as<PadParams>();
  auto padded = [&](const Batched& y, const Tensor& with) {
    PadParams p = lane;
    if (y.axis)
      p = {lanes::inserted(p.low, *y.axis, 0), lanes::inserted(p.high, *y.axis, 0),
           lanes::inserted(p.interior, *y.axis, 0)};
    return emit(Op::pad, make_params(std::move(p)), {y.value, with}, c.where());
  };
  if (!c.mapped(1)) return shape_batch::one(padded(x, c.operands[1].value), *x.axis);
  // A padding value per lane: pad with anything, and put the value where no element of x came to
  // lie.
  const int axis = x.axis.value_or(0);
  const Aval& aval = c.operand_aval(0);
  const Tensor nothing =
      full_tensor(Scalar(false).converted(aval.dtype), Aval(aval.dtype, Shape{}));
  const Tensor elements = lanes::at_axis({padded(x, nothing), x.axis}, axis, c.lanes, c.where());
  const Tensor inside =
      padded({full_tensor(Scalar(true), Aval(DType::bool_, aval.shape)), std::nullopt},
             full_tensor(Scalar(false), Aval(DType::bool_, Shape{})));
  const Tensor value =
      emit(Op::broadcast_in_dim, make_params(BroadcastParams{elements.shape(), Axes{axis}}),
           {c.operands[1].value}, c.where());
  return shape_batch::one(
      emit(Op::select, {}, {lanes::broadcast(inside, c.lanes, axis, c.where()), elements, value},
           c.where()),
      axis);
}

BatchedList rev(const BatchCall& c) {
  const Batched& x = c.operands[0];
  return shape_batch::one(
      emit(Op::rev, make_params(AxesParams{lanes::shifted(c.as<AxesParams>().axes, *x.axis)}),
           {x.value}, c.where()),
      *x.axis);
}

// The places inside windows are new axes at the end, so the lanes stay where they are.
BatchedList windows(const BatchCall& c) {
  const Batched& x = c.operands[0];
  WindowParams p = c.as<WindowParams>();
  p.axes = lanes::shifted(p.axes, *x.axis);
  return shape_batch::one(emit(Op::windows, make_params(std::move(p)), {x.value}, c.where()),
                          *x.axis);
}

// Only lanes among the places have to be moved.
BatchedList overlap_add(const BatchCall& c) {
  const Batched& x = c.operands[0];
  WindowParams p = c.as<WindowParams>();
  const int axis = *x.axis <= c.result_aval().shape.rank() ? *x.axis : 0;
  p.axes = lanes::shifted(p.axes, axis);
  return shape_batch::one(emit(Op::overlap_add, make_params(std::move(p)),
                               {lanes::moved(x.value, *x.axis, axis, c.where())}, c.where()),
                          axis);
}

BatchedList slice(const BatchCall& c) {
  const Batched& x = c.operands[0];
  const auto& p = c.as<SliceParams>();
  SliceParams all{lanes::inserted(p.start, *x.axis, 0), lanes::inserted(p.limit, *x.axis, c.lanes),
                  lanes::inserted(p.stride, *x.axis, 1)};
  return shape_batch::one(emit(Op::slice, make_params(std::move(all)), {x.value}, c.where()),
                          *x.axis);
}

}  // namespace vt::detail::batch_rules
