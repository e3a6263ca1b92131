// Batch rules of reductions and of scans along an axis: the reduced axes shift past the lanes.
#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/ir/collectives.hpp"
#include "../../../trace/record/named_axes.hpp"
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace reduce_batch {

int axis_after(const Axes& reduced, int axis) {
  return axis - static_cast<int>(count_if(reduced, [&](int a) { return a < axis; }));
}

BatchedList one(Tensor value, int axis) {
  BatchedList results;
  results.push_back({std::move(value), axis});
  return results;
}

// The reduction when its start values differ between lanes, for which the op has no place: start
// value and elements become one row per result element, and neighbours are combined until one is
// left, which the body's associativity allows.
class RowReduction {
 public:
  explicit RowReduction(const BatchCall& c)
      : c_(c), body_(*c.as<ReduceParams>().body), count_(c.equation.outputs.size()) {
    for (std::size_t i = 0; i < count_; ++i) rows_.push_back(row(i));
    length_ = rows_[0].shape().back();
  }

  BatchedList run() {
    while (length_ > 1) halve();
    BatchedList results;
    for (const Tensor& r : rows_)
      results.push_back({emit(Op::reshape, make_params(ShapeParams{kept_}), {r}, c_.where()), 0});
    return results;
  }

 private:
  // [lanes, kept axes…, 1 + reduced elements] of operand i.
  Tensor row(std::size_t i) {
    const Axes& axes = c_.as<ReduceParams>().axes;
    const Tensor x = lanes::at_axis(c_.operands[i], 0, c_.lanes, c_.where());
    Axes permutation{0};
    kept_ = Shape{c_.lanes};
    std::int64_t reduced = 1;
    for (int a = 1; a < x.rank(); ++a) {
      if (axes.contains(a - 1)) continue;
      permutation.push_back(a);
      kept_.push_back(x.shape()[a]);
    }
    for (int a : axes) {
      permutation.push_back(a + 1);
      reduced *= x.shape()[static_cast<std::size_t>(a) + 1];
    }
    const Tensor transposed =
        emit(Op::transpose, make_params(PermutationParams{permutation}), {x}, c_.where());
    const Tensor elements =
        emit(Op::reshape, make_params(ShapeParams{lanes::inserted(kept_, kept_.rank(), reduced)}),
             {transposed}, c_.where());
    const Batched& start = c_.operands[count_ + i];
    const Tensor first = emit(Op::broadcast_in_dim,
                              make_params(BroadcastParams{lanes::inserted(kept_, kept_.rank(), 1),
                                                          start.axis ? Axes{0} : Axes{}}),
                              {start.value}, c_.where());
    return emit(Op::concatenate, make_params(AxisParams{kept_.rank()}), {first, elements},
                c_.where());
  }

  Tensor part(const Tensor& x, std::int64_t start, std::int64_t limit, std::int64_t stride) const {
    SliceParams p{Shape::filled(x.shape().size(), 0), x.shape(),
                  Shape::filled(x.shape().size(), 1)};
    p.start.back() = start;
    p.limit.back() = limit;
    p.stride.back() = stride;
    return emit(Op::slice, make_params(std::move(p)), {x}, c_.where());
  }

  void halve() {
    const std::int64_t half = length_ / 2;
    const Shape shape = lanes::inserted(kept_, kept_.rank(), half), flat{shape.elements()};
    Vec<Batched> inputs;  // the body takes scalars: every pair is a lane of its own
    for (std::int64_t side : {0, 1})
      for (const Tensor& r : rows_)
        inputs.push_back({emit(Op::reshape, make_params(ShapeParams{flat}),
                               {part(r, side, side + 2 * half - 1, 2)}, c_.where()),
                          0});
    const Vec<Batched> combined = batch_graph(body_, inputs, flat[0]);
    for (std::size_t i = 0; i < count_; ++i) {
      Tensor next = emit(Op::reshape, make_params(ShapeParams{shape}),
                         {lanes::at_axis(combined[i], 0, flat[0], c_.where())}, c_.where());
      if (length_ % 2)
        next = emit(Op::concatenate, make_params(AxisParams{kept_.rank()}),
                    {next, part(rows_[i], length_ - 1, length_, 1)}, c_.where());
      rows_[i] = next;
    }
    length_ -= half;
  }

  const BatchCall& c_;
  const GraphBody& body_;
  std::size_t count_;
  std::vector<Tensor> rows_;
  Shape kept_;
  std::int64_t length_ = 0;
};

}  // namespace reduce_batch

BatchedList reduce_axes(const BatchCall& c) {
  const Batched& x = c.operands[0];
  const Axes axes = lanes::shifted(c.as<AxesParams>().axes, *x.axis);
  return reduce_batch::one(emit(c.equation.op, make_params(AxesParams{axes}), {x.value}, c.where()),
                           reduce_batch::axis_after(axes, *x.axis));
}

BatchedList arg_extreme(const BatchCall& c) {
  const Batched& x = c.operands[0];
  ArgParams p = c.as<ArgParams>();
  p.axis = lanes::shifted(p.axis, *x.axis);
  const int axis = reduce_batch::axis_after(Axes{p.axis}, *x.axis);
  return reduce_batch::one(emit(c.equation.op, make_params(p), {x.value}, c.where()), axis);
}

BatchedList reduce(const BatchCall& c) {
  if (c.axis.name && works_over(*c.as<ReduceParams>().body, *c.axis.name))
    fail(ErrorKind::transform,
         "vt::reduce: a collective over \"" + c.axis.name->name +
             "\" has no meaning inside the function of a reduction",
         c.where());
  const std::size_t values = c.equation.outputs.size();
  for (std::size_t i = values; i < c.operands.size(); ++i)
    if (c.mapped(i)) return reduce_batch::RowReduction(c).run();
  ReduceParams p = c.as<ReduceParams>();
  const int axis = *std::find_if(c.operands.begin(), c.operands.end(), [](const Batched& x) {
                      return x.axis.has_value();
                    })->axis;
  p.axes = lanes::shifted(p.axes, axis);
  const int after = reduce_batch::axis_after(p.axes, axis);
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < c.operands.size(); ++i)
    operands.push_back(i < values ? lanes::at_axis(c.operands[i], axis, c.lanes, c.where())
                                  : c.operands[i].value);
  BatchedList results;
  for (Tensor& t : emit_all(Op::reduce, make_params(std::move(p)), operands, c.where()))
    results.push_back({std::move(t), after});
  return results;
}

BatchedList cumulative(const BatchCall& c) {
  const Batched& x = c.operands[0];
  CumulativeParams p = c.as<CumulativeParams>();
  p.axis = lanes::shifted(p.axis, *x.axis);
  return reduce_batch::one(emit(c.equation.op, make_params(p), {x.value}, c.where()), *x.axis);
}

}  // namespace vt::detail::batch_rules
