// Batch rules of the collectives. Over the axis being batched they become ordinary ops; over outer
// axes they stay collectives, for all lanes at once.
#include <algorithm>
#include <limits>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/base/buffer.hpp"
#include "../active_lanes.hpp"
#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace collective_batch {

/// Over an axis further out: the lanes at hand are part of each of its lanes. New or exchanged
/// elements lie along axis 0.
Batched over_outer(const BatchCall& c) {
  Batched x = c.operands[0];
  if (c.equation.op == Op::all_to_all && *x.axis == 0)
    x = {lanes::moved(x.value, 0, 1, c.where()), 1};
  return {emit(c.equation.op, c.equation.params, {x.value}, c.where()),
          *x.axis + (c.equation.op == Op::all_gather)};
}

/// `count` times a value that lanes share; 16-bit floats hold few such numbers.
Tensor times(const Tensor& x, const Tensor& count, CallSite where) {
  const DType own = x.dtype(), wide = own == DType::f16 || own == DType::bf16 ? DType::f32 : own;
  const auto as = [&](const Tensor& t, DType d) {
    return t.dtype() == d ? t : emit(Op::convert, make_params(ConvertParams{d}), {t}, where);
  };
  return as(emit(Op::mul, {}, {as(x, wide), as(count, wide)}, where), own);
}
/// How many lanes there are that run, as a number for elements of `x`.
Tensor lane_count(const BatchCall& c, const Tensor& x) {
  if (c.axis.active) return c.axis.active->count;
  const DType dtype = x.dtype() == DType::f16 || x.dtype() == DType::bf16 ? DType::f32 : x.dtype();
  return full_tensor(Scalar(c.lanes).converted(dtype), Aval(dtype, Shape{}));
}

/// A reduction over the axis of lanes.
Tensor reduced(Op op, const Batched& x, CallSite where) {
  return emit(op, make_params(AxesParams{Axes{*x.axis}}), {x.value}, where);
}

/// What changes no result: the greatest or least of no lanes, else zero.
Scalar neutral_of(Op op, DType dtype) {
  if (op != Op::pmax && op != Op::pmin) return Scalar(false).converted(dtype);
  if (is_bool(dtype)) return Scalar(op == Op::pmin);
  const double sign = op == Op::pmax ? -1 : 1;
  return Scalar(sign * std::numeric_limits<double>::infinity()).converted(dtype);
}
Tensor extremum_of_none(Op op, const Aval& lane) {
  return full_tensor(neutral_of(op, lane.dtype), Aval(lane.dtype, lane.shape));
}
/// The operand, with what changes nothing for lanes that do not run.
Batched of_active(const BatchCall& c) {
  const Batched& x = c.operands[0];
  const Op op = c.equation.op;
  const bool counted = !x.axis && (op == Op::psum || op == Op::pmax || op == Op::pmin);
  if (!c.axis.active || counted) return x;
  return {where_active(*c.axis.active, x, neutral_of(op, x.value.dtype()), c.lanes, c.where()), 0};
}

/// Lane l of the result is lane sources[l] of the operand, or zeros.
Batched permuted(const Batched& x, const Vec<std::int64_t>& sources, std::int64_t lanes,
                 CallSite where) {
  const int axis = *x.axis;
  const Shape& shape = x.value.shape();
  const std::size_t at = axis;
  // Runs of neighbours are cut out whole: a shift is two of them.
  struct Run {
    std::int64_t source, count;
  };
  Vec<Run> runs;
  for (std::int64_t s : sources) {
    const bool joins = !runs.empty() && (s < 0 ? runs.back().source < 0
                                               : runs.back().source >= 0 &&
                                                     s == runs.back().source + runs.back().count);
    if (joins) ++runs.back().count;
    else runs.push_back({s, 1});
  }
  if (runs.empty()) return x;
  constexpr std::size_t few = 4;
  if (runs.size() <= few) {
    std::vector<Tensor> parts;
    for (const Run& run : runs) {
      Shape part = shape;
      part[at] = run.count;
      if (run.source < 0) {
        parts.push_back(
            full_tensor(Scalar(false).converted(x.value.dtype()), Aval(x.value.dtype(), part)));
        continue;
      }
      SliceParams p{Shape::filled(shape.size(), 0), shape, Shape::filled(shape.size(), 1)};
      p.start[at] = run.source;
      p.limit[at] = run.source + run.count;
      parts.push_back(emit(Op::slice, make_params(std::move(p)), {x.value}, where));
    }
    return {parts.size() == 1 ? parts[0]
                              : emit(Op::concatenate, make_params(AxisParams{axis}), parts, where),
            axis};
  }
  const BufferRef places = allocate(sources.size() * sizeof(std::int64_t));
  std::copy(sources.begin(), sources.end(), places->as<std::int64_t>());
  GatherParams p;
  for (int a = 0; a < shape.rank(); ++a)
    if (a != axis) p.offset_dims.push_back(a);
  p.collapsed_slice_dims = p.start_index_map = Axes{axis};
  p.slice_sizes = shape;
  p.slice_sizes[at] = 1;
  p.mode = IndexMode::fill;  // −1 is no lane
  return {emit(Op::gather, make_params(std::move(p)),
               {x.value, from_buffer(places, Aval(DType::i64, Shape{lanes, 1}))}, where),
          axis};
}

Batched over_lanes(const BatchCall& c) {
  const Batched x = of_active(c);
  const CallSite where = c.where();
  const auto& p = c.as<CollectiveParams>();
  switch (c.equation.op) {
    case Op::psum:
      if (c.lanes == 0)
        return {full_tensor(Scalar(false).converted(x.value.dtype()), c.result_aval()),
                std::nullopt};
      return {x.axis ? reduced(Op::reduce_sum, x, where)
                     : times(x.value, lane_count(c, x.value), where),
              std::nullopt};
    case Op::pmax:
    case Op::pmin:
      if (c.lanes == 0) return {extremum_of_none(c.equation.op, c.result_aval()), std::nullopt};
      return {x.axis
                  ? reduced(c.equation.op == Op::pmax ? Op::reduce_max : Op::reduce_min, x, where)
                  : x.value,
              std::nullopt};
    case Op::all_gather: return {lanes::at_axis(x, 0, c.lanes, where), std::nullopt};
    case Op::all_to_all: {
      // The axis of lanes and the lanes' own axis 0 change places; shared elements are handed out,
      // one to each lane.
      if (!x.axis) return {lanes::broadcast(x.value, c.lanes, 1, where), 0};
      return {lanes::moved(x.value, *x.axis, 0, where), 1};
    }
    default: {
      const bool whole = std::find(p.sources.begin(), p.sources.end(), -1) == p.sources.end();
      if (!x.axis && whole) return x;
      return permuted(x.axis ? x : Batched{c.broadcast(0, 0), 0}, p.sources, c.lanes, where);
    }
  }
}

}  // namespace collective_batch

BatchedList collective(const BatchCall& c) {
  BatchedList result;
  result.push_back(c.as<CollectiveParams>().axis == c.axis.name ? collective_batch::over_lanes(c)
                                                                : collective_batch::over_outer(c));
  return result;
}

}  // namespace vt::detail::batch_rules
