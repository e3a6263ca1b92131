// Batch rules of dynamic slices, gather and scatter. Lanes of the operand alone become part of the
// window, lanes of the indices alone more index vectors, lanes of both batching dimensions. A read
// at the loop's own index becomes a slice.
#include <algorithm>
#include <limits>

#include <vt/detail/small_vec.hpp>

#include "../lanes.hpp"

namespace vt::detail::batch_rules {

namespace index_batch {

BatchedList one(Tensor value, int axis) {
  BatchedList results;
  results.push_back({std::move(value), axis});
  return results;
}

Tensor zero_index(DType dtype) {
  return full_tensor(Scalar(std::int64_t{0}).converted(dtype), Aval(dtype, Shape{}));
}

bool any_mapped(std::span<const Batched> operands) {
  return any_of(operands, [](const Batched& x) { return x.axis.has_value(); });
}

// Adds the pair of batching dimensions `of_operand`, `of_indices` (already shifted lists), keeping
// the operand's ones sorted.
void add_batching(Axes& operand_dims, Axes& indices_dims, int of_operand, int of_indices) {
  const auto at =
      std::lower_bound(operand_dims.begin(), operand_dims.end(), of_operand) - operand_dims.begin();
  operand_dims.insert(operand_dims.begin() + at, of_operand);
  indices_dims.insert(indices_dims.begin() + at, of_indices);
}

// Axes 0 … rank − 1 that are not in `taken`.
Axes others(int rank, const Axes& taken) {
  Axes result;
  for (int a = 0; a < rank; ++a)
    if (!taken.contains(a)) result.push_back(a);
  return result;
}

// Where a new axis may go into an array so that it comes k-th among the axes `group` (sorted):
// positions first … last.
struct Places {
  int first, last;
  int nearest(int wanted) const { return std::clamp(wanted, first, last); }
};
Places places(const Axes& group, int k, int rank) {
  const std::size_t at = k;
  return {at == 0 ? 0 : group[at - 1] + 1, at < group.size() ? group[at] : rank};
}

// The start indices that differ between lanes, as index vectors [lanes, count] of one dtype.
Tensor index_vectors(const Vec<Batched>& starts, std::int64_t lanes, CallSite where) {
  DType dtype = starts[0].value.dtype();
  for (const Batched& s : starts)
    if (s.value.dtype() != dtype) dtype = DType::i64;
  std::vector<Tensor> columns;
  for (const Batched& s : starts) {
    Tensor t = s.value;
    if (t.dtype() != dtype) {
      // Beyond i64 an index is out of range on the high side; it must not wrap to the low one.
      if (t.dtype() == DType::u64)
        t = emit(
            Op::min, {},
            {t, full_tensor(
                    Scalar(static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())),
                    aval_of(t))},
            where);
      t = emit(Op::convert, make_params(ConvertParams{dtype, false}), {t}, where);
    }
    columns.push_back(emit(Op::broadcast_in_dim,
                           make_params(BroadcastParams{Shape{lanes, 1}, s.axis ? Axes{0} : Axes{}}),
                           {t}, where));
  }
  return columns.size() == 1 ? columns[0]
                             : emit(Op::concatenate, make_params(AxisParams{1}), columns, where);
}

// x[…, l, …] with the lane l taken from `axis`, which stays in a lane's view as an axis of size 1.
Batched unit_axis_by_lane(const Tensor& sliced, int axis, CallSite where) {
  return {emit(Op::reshape, make_params(ShapeParams{lanes::inserted(sliced.shape(), axis + 1, 1)}),
               {sliced}, where),
          axis};
}

}  // namespace index_batch

BatchedList dynamic_slice(const BatchCall& c) {
  using namespace index_batch;
  const Shape& sizes = c.as<ShapeParams>().shape;
  const Shape shape = c.operand_aval(0).shape;
  const int rank = shape.rank();
  Batched x = c.operands[0];
  Vec<Batched> starts(c.operands.begin() + 1, c.operands.end());

  for (int a = 0; a < rank; ++a) {
    Batched& s = starts[a];
    const std::size_t at = a;
    if (!s.axis) continue;
    // The window covers the axis: it starts at 0, whatever was asked for.
    if (sizes[at] == shape[at]) s = {zero_index(s.value.dtype()), std::nullopt};
    else if (sizes[at] == 1 && !x.axis) {
      const auto index = lanes::lane_index(s, c.lanes);
      const auto sliced =
          index ? lanes::by_lane(x.value, a, *index, c.lanes, c.where()) : std::nullopt;
      if (!sliced) continue;
      x = unit_axis_by_lane(*sliced, a, c.where());
      s = {zero_index(s.value.dtype()), std::nullopt};
    }
  }

  // First what all lanes slice alike, then the gather of the rest.
  Shape now = x.axis ? lanes::removed(x.value.shape(), *x.axis) : x.value.shape();
  const auto of_lanes = [&](std::size_t a) { return starts[a].axis.has_value(); };
  Shape common = now;
  bool smaller = false;
  for (std::size_t a = 0; a < starts.size(); ++a) {
    if (of_lanes(a)) continue;
    smaller = smaller || sizes[a] != now[a];
    common[a] = sizes[a];
  }
  if (smaller) {
    std::vector<Tensor> operands{x.value};
    for (std::size_t a = 0; a < starts.size(); ++a)
      operands.push_back(of_lanes(a) ? zero_index(starts[a].value.dtype()) : starts[a].value);
    Shape window = common;
    if (x.axis) {
      operands.insert(operands.begin() + 1 + *x.axis,
                      zero_index(starts.empty() ? DType::i32 : starts[0].value.dtype()));
      window = lanes::inserted(common, *x.axis, c.lanes);
    }
    x.value = emit(Op::dynamic_slice, make_params(ShapeParams{window}), operands, c.where());
  }
  if (!any_mapped(starts)) return {x};

  GatherParams p;
  Vec<Batched> mapped_starts;
  for (int a = 0; a < rank; ++a) {
    if (!of_lanes(static_cast<std::size_t>(a))) continue;
    mapped_starts.push_back(starts[a]);
    p.start_index_map.push_back(x.axis ? lanes::shifted(a, *x.axis) : a);
  }
  for (int a = 0; a < rank; ++a) p.offset_dims.push_back(a + 1);
  p.slice_sizes = sizes;
  if (x.axis) {
    p.slice_sizes = lanes::inserted(sizes, *x.axis, 1);
    p.operand_batching_dims = Axes{*x.axis};
    p.indices_batching_dims = Axes{0};
  }
  p.mode = IndexMode::clip;
  return one(emit(Op::gather, make_params(std::move(p)),
                  {x.value, index_vectors(mapped_starts, c.lanes, c.where())}, c.where()),
             0);
}

BatchedList dynamic_update_slice(const BatchCall& c) {
  using namespace index_batch;
  const Batched& x = c.operands[0];
  const Batched& update = c.operands[1];
  const int rank = c.operand_aval(0).shape.rank();
  const Vec<Batched> starts(c.operands.begin() + 2, c.operands.end());
  const int axis = x.axis ? *x.axis : update.axis.value_or(0);
  const Tensor operand = lanes::at_axis(x, axis, c.lanes, c.where());
  if (!any_mapped(starts)) {
    std::vector<Tensor> operands{operand, lanes::at_axis(update, axis, c.lanes, c.where())};
    for (const Batched& s : starts) operands.push_back(s.value);
    operands.insert(operands.begin() + 2 + axis,
                    zero_index(starts.empty() ? DType::i32 : starts[0].value.dtype()));
    return one(emit(Op::dynamic_update_slice, {}, operands, c.where()), axis);
  }
  // One window per lane, each in its own lane of the operand, which can thus be updated in place.
  ScatterParams p;
  for (int a = 0; a < rank; ++a) {
    p.update_window_dims.push_back(a + 1);
    p.scatter_dims_to_operand_dims.push_back(lanes::shifted(a, axis));
  }
  p.operand_batching_dims = Axes{axis};
  p.indices_batching_dims = Axes{0};
  p.mode = IndexMode::clip;
  p.unique = true;
  return one(emit(Op::scatter, make_params(std::move(p)),
                  {operand, index_vectors(starts, c.lanes, c.where()),
                   lanes::at_axis(update, 0, c.lanes, c.where())},
                  c.where()),
             axis);
}

namespace index_batch {

// One window per lane whose only index is the loop's: the operand sliced along that axis has the
// lanes in place.
std::optional<Batched> gather_by_lane(const BatchCall& c) {
  const auto& p = c.as<GatherParams>();
  if (c.mapped(0) || p.start_index_map.size() != 1 || !p.operand_batching_dims.empty())
    return std::nullopt;
  const int axis = p.start_index_map[0];
  if (p.slice_sizes[axis] != 1) return std::nullopt;
  const auto index = lanes::lane_index(c.operands[1], c.lanes);
  const auto sliced =
      index ? lanes::by_lane(c.operands[0].value, axis, *index, c.lanes, c.where()) : std::nullopt;
  if (!sliced) return std::nullopt;
  Batched x{*sliced, axis};
  // The other axes start at 0; the collapsed ones go.
  Shape window = p.slice_sizes;
  window[axis] = c.lanes;
  if (window != x.value.shape())
    x.value = emit(Op::slice,
                   make_params(SliceParams{Shape::filled(window.size(), 0), window,
                                           Shape::filled(window.size(), 1)}),
                   {x.value}, c.where());
  Shape kept;
  for (int a = 0; a < window.rank(); ++a) {
    if (a == axis) {
      x.axis = kept.rank();
      kept.push_back(c.lanes);
    }
    if (!p.collapsed_slice_dims.contains(a)) kept.push_back(a == axis ? 1 : window[a]);
  }
  if (kept != window)
    x.value = emit(Op::reshape, make_params(ShapeParams{kept}), {x.value}, c.where());
  const Shape& result = c.result_aval().shape;
  return result.rank() == static_cast<int>(p.offset_dims.size())
             ? x
             : lanes::broadcast(x, result, p.offset_dims, c.where());
}

}  // namespace index_batch

// The lanes behind the rows.
BatchedList rows(const BatchCall& c) {
  std::vector<Tensor> operands;
  for (const Batched& x : c.operands) operands.push_back(lanes::at_axis(x, 1, c.lanes, c.where()));
  return {{emit(Op::rows, c.equation.params, operands, c.where()), 1}};
}
BatchedList rows_add(const BatchCall& c) {
  const Tensor x = lanes::at_axis(c.operands[0], 1, c.lanes, c.where());
  BatchedList sums;
  for (Tensor& t : emit_all(Op::rows_add, c.equation.params, {&x, 1}, c.where()))
    sums.push_back({std::move(t), 1});
  return sums;
}

BatchedList gather(const BatchCall& c) {
  using namespace index_batch;
  if (auto sliced = gather_by_lane(c)) return {*sliced};
  const Batched& x = c.operands[0];
  Batched indices = c.operands[1];
  GatherParams p = c.as<GatherParams>();
  const int result_rank = c.result_aval().shape.rank();
  const int vector_axis = c.operand_aval(1).shape.rank() - 1;
  // The index vectors stay the last axis.
  if (indices.axis && *indices.axis > vector_axis)
    indices = {lanes::moved(indices.value, *indices.axis, 0, c.where()), 0};
  if (x.axis) {
    p.collapsed_slice_dims = lanes::shifted(p.collapsed_slice_dims, *x.axis);
    p.start_index_map = lanes::shifted(p.start_index_map, *x.axis);
    p.operand_batching_dims = lanes::shifted(p.operand_batching_dims, *x.axis);
    p.slice_sizes = lanes::inserted(p.slice_sizes, *x.axis, indices.axis ? 1 : c.lanes);
  }
  int axis = 0;
  if (indices.axis) {
    p.indices_batching_dims = lanes::shifted(p.indices_batching_dims, *indices.axis);
    if (x.axis)
      add_batching(p.operand_batching_dims, p.indices_batching_dims, *x.axis, *indices.axis);
    axis = places(others(result_rank, p.offset_dims), *indices.axis, result_rank).first;
    p.offset_dims = lanes::shifted(p.offset_dims, axis);
  } else {
    // The lanes are one more axis of every window, in the operand's order.
    int before = 0;
    for (int a = 0; a < *x.axis; ++a)
      before += !p.collapsed_slice_dims.contains(a) && !p.operand_batching_dims.contains(a);
    axis = places(p.offset_dims, before, result_rank).first;
    p.offset_dims = lanes::shifted(p.offset_dims, axis);
    p.offset_dims.insert(p.offset_dims.begin() + before, axis);
  }
  return one(emit(Op::gather, make_params(std::move(p)), {x.value, indices.value}, c.where()),
             axis);
}

BatchedList scatter(const BatchCall& c) {
  using namespace index_batch;
  const Batched& x = c.operands[0];
  Batched indices = c.operands[1];
  const Batched& updates = c.operands[2];
  ScatterParams p = c.as<ScatterParams>();
  const int rank = c.operand_aval(0).shape.rank();
  const int updates_rank = c.operand_aval(2).shape.rank();
  const int vector_axis = c.operand_aval(1).shape.rank() - 1;
  if (indices.axis && *indices.axis > vector_axis)
    indices = {lanes::moved(indices.value, *indices.axis, 0, c.where()), 0};

  // Axes of the operand that windows cover, in one lane's numbering.
  Axes gone = p.inserted_window_dims;
  gone.append(p.operand_batching_dims.begin(), p.operand_batching_dims.end());
  const Axes window = others(rank, gone);

  int axis = x.axis.value_or(0), updates_axis = 0;
  if (indices.axis) {
    // In step: lane l of the updates goes into lane l of the operand at lane l's indices.
    updates_axis = places(others(updates_rank, p.update_window_dims), *indices.axis, updates_rank)
                       .nearest(updates.axis.value_or(0));
  } else {
    // The lanes are one more axis of every window; it has the same rank among them in the operand
    // and in the updates.
    if (!x.axis) {
      int before = 0;
      for (int a : p.update_window_dims) before += a < *updates.axis;
      axis = places(window, before, rank).first;
    }
    const int before = static_cast<int>(count_if(window, [&](int a) { return a < axis; }));
    updates_axis =
        places(p.update_window_dims, before, updates_rank).nearest(updates.axis.value_or(0));
    p.update_window_dims = lanes::shifted(p.update_window_dims, updates_axis);
    p.update_window_dims.insert(p.update_window_dims.begin() + before, updates_axis);
  }
  const Tensor operand = lanes::at_axis(x, axis, c.lanes, c.where());
  const Tensor values = lanes::at_axis(updates, updates_axis, c.lanes, c.where());
  p.inserted_window_dims = lanes::shifted(p.inserted_window_dims, axis);
  p.scatter_dims_to_operand_dims = lanes::shifted(p.scatter_dims_to_operand_dims, axis);
  p.operand_batching_dims = lanes::shifted(p.operand_batching_dims, axis);
  if (indices.axis) {
    p.update_window_dims = lanes::shifted(p.update_window_dims, updates_axis);
    p.indices_batching_dims = lanes::shifted(p.indices_batching_dims, *indices.axis);
    add_batching(p.operand_batching_dims, p.indices_batching_dims, axis, *indices.axis);
  }
  return one(
      emit(c.equation.op, make_params(std::move(p)), {operand, indices.value, values}, c.where()),
      axis);
}

}  // namespace vt::detail::batch_rules
