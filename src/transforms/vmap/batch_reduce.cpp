// Batch rules of reductions and of scans along an axis: the reduced axes shift past the lanes.
#include <algorithm>

#include "lanes.hpp"

namespace vt::detail::batch_rules {

namespace reduce_batch {

int axis_after(const Axes& reduced, int axis) {
  return axis - static_cast<int>(std::count_if(reduced.begin(), reduced.end(), [&](int a) { return a < axis; }));
}

BatchedList one(Tensor value, int axis) {
  BatchedList results;
  results.push_back({std::move(value), axis});
  return results;
}

}  // namespace reduce_batch

BatchedList reduce_axes(const BatchCall& c) {
  const Batched& x = c.operands[0];
  const Axes axes = lanes::shifted(c.as<AxesParams>().axes, *x.axis);
  return reduce_batch::one(emit(c.equation.op, make_params(AxesParams{axes}), {x.value}, c.where()), reduce_batch::axis_after(axes, *x.axis));
}

BatchedList arg_extreme(const BatchCall& c) {
  const Batched& x = c.operands[0];
  ArgParams p = c.as<ArgParams>();
  p.axis = lanes::shifted(p.axis, *x.axis);
  const int axis = reduce_batch::axis_after(Axes{p.axis}, *x.axis);
  return reduce_batch::one(emit(c.equation.op, make_params(p), {x.value}, c.where()), axis);
}

BatchedList reduce(const BatchCall& c) {
  // The start values are scalars of the whole reduction. One per lane has no place in the op.
  const std::size_t values = c.equation.outputs.size();
  for (std::size_t i = values; i < c.operands.size(); ++i)
    if (c.mapped(i)) return lane_loop(c);
  ReduceParams p = c.as<ReduceParams>();
  const int axis = *std::find_if(c.operands.begin(), c.operands.end(), [](const Batched& x) { return x.axis.has_value(); })->axis;
  p.axes = lanes::shifted(p.axes, axis);
  const int after = reduce_batch::axis_after(p.axes, axis);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(i < values ? lanes::at_axis(c.operands[i], axis, c.lanes, c.where()) : c.operands[i].value);
  BatchedList results;
  for (Tensor& t : emit_all(Op::reduce, make_params(std::move(p)), operands, c.where())) results.push_back({std::move(t), after});
  return results;
}

BatchedList cumulative(const BatchCall& c) {
  const Batched& x = c.operands[0];
  CumulativeParams p = c.as<CumulativeParams>();
  p.axis = lanes::shifted(p.axis, *x.axis);
  return reduce_batch::one(emit(c.equation.op, make_params(p), {x.value}, c.where()), *x.axis);
}

}  // namespace vt::detail::batch_rules
