// Shape rules of the ops that move elements: reshape … rev, slices, gather and the scatters.

#include <vt/detail/message.hpp>

#include "rules.hpp"

namespace vt::detail::shape_rules {

namespace index_rules {

/// Throws unless the list has one entry per axis of the operand.
inline void need_rank(const Call& c, const Shape& list, int rank, const char* what) {
  if (list.rank() != rank)
    c.refuse_shape(
        formatted("{} {} has {} entries for rank {}", what, list.str(), list.rank(), rank));
}
}  // namespace index_rules

// --- shape ---------------------------------------------------------------------------------------

Avals reshape(const Call& c) {
  const Shape& shape = c.as<ShapeParams>().shape;
  const Aval& x = c.operand(0);
  check_size(c, x.dtype, shape);
  if (shape.elements() != x.elements())
    c.refuse_shape(formatted("{} elements do not fill shape {} ({})", x.elements(), shape.str(),
                             shape.elements()));
  return result(x.dtype, shape, x.weak);
}

Avals transpose(const Call& c) {
  const Axes& permutation = c.as<PermutationParams>().permutation;
  const Aval& x = c.operand(0);
  if (static_cast<int>(permutation.size()) != x.shape.rank())
    c.refuse_shape(formatted("permutation {} does not have one entry per axis", permutation.str()));
  check_axes(c, permutation, x.shape.rank(), "permutation", false);
  Shape shape;
  for (int axis : permutation) shape.push_back(x.shape[axis]);
  return result(x.dtype, std::move(shape), x.weak);
}

Avals broadcast_in_dim(const Call& c) {
  const auto& p = c.as<BroadcastParams>();
  const Aval& x = c.operand(0);
  if (static_cast<int>(p.axes.size()) != x.shape.rank())
    c.refuse_shape(formatted("axes {} do not name one result axis per operand axis", p.axes.str()));
  check_axes(c, p.axes, p.shape.rank(), "axes", true);
  for (std::size_t i = 0; i < p.axes.size(); ++i) {
    const std::int64_t from = x.shape[i], to = p.shape[p.axes[i]];
    if (from != to && from != 1)
      c.refuse_shape(formatted("to {} along {}: axis {} of size {} does not broadcast to {}",
                               p.shape.str(), p.axes.str(), i, from, to));
  }
  return result(x.dtype, p.shape, x.weak);
}

Avals concatenate(const Call& c) {
  const int axis = c.as<AxisParams>().axis;
  if (c.operands.empty()) c.refuse_shape("needs at least one operand");
  const Aval& first = c.operand(0);
  check_axis(c, axis, first.shape.rank(), "axis");
  Shape shape = first.shape;
  bool weak = first.weak;
  for (std::size_t i = 1; i < c.operands.size(); ++i) {
    const Aval& x = c.operand(i);
    if (x.dtype != first.dtype) c.refuse_dtype("dtypes differ");
    if (x.shape.rank() != first.shape.rank()) c.refuse_shape("ranks differ");
    for (int d = 0; d < shape.rank(); ++d)
      if (d != axis && x.shape[d] != shape[d])
        c.refuse_shape(
            formatted("along axis {}: operand {} differs from the first in axis {}", axis, i, d));
    std::int64_t& extent = shape[axis];
    extent = plus(extent, x.shape[axis]);
    weak = weak && x.weak;
  }
  return result(first.dtype, std::move(shape), weak);
}

namespace index_rules {

/// Throws if runs of rows lie outside what they are taken from or added to.
inline void check_runs(const Call& c, const RowsParams& p, std::size_t arrays,
                       FunctionRef<std::int64_t(std::size_t)> rows_of) {
  for (const RowRun& run : p.runs) {
    if (run.first < 0 || run.count < 0 || run.operand >= static_cast<int>(arrays))
      c.refuse_shape(
          formatted("run of {} rows from {} of array {}", run.count, run.first, run.operand));
    if (run.operand < 0) continue;
    const std::int64_t rows = rows_of(run.operand);
    if (run.first > rows - run.count)
      c.refuse_shape(formatted("rows {} to {} of array {}, which has {}", run.first,
                               run.first + run.count - 1, run.operand, rows));
  }
}
inline Aval with_rows(const Aval& a, std::int64_t rows, bool weak) {
  Aval changed(a.dtype, a.shape, weak);
  changed.shape[0] = rows;
  return changed;
}

}  // namespace index_rules

Avals rows(const Call& c) {
  const auto& p = c.as<RowsParams>();
  if (c.operands.empty()) c.refuse_shape("needs at least one operand");
  const Aval& first = c.operand(0);
  bool weak = true;
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    const Aval& x = c.operand(i);
    if (x.dtype != first.dtype) c.refuse_dtype("dtypes differ");
    if (x.shape.empty()) c.refuse_shape(formatted("operand {} has no axis of rows", i));
    if (index_rules::with_rows(x, 0, false) != index_rules::with_rows(first, 0, false))
      c.refuse_shape(formatted("operand {} differs from the first beyond axis 0", i));
    weak = weak && x.weak;
  }
  index_rules::check_runs(c, p, c.operands.size(),
                          [&](std::size_t i) { return c.operand(i).shape[0]; });
  return {index_rules::with_rows(first, p.count(), weak)};
}

Avals rows_add(const Call& c) {
  const auto& p = c.as<RowsParams>();
  const Aval& x = c.operand(0);
  if (x.shape.empty() || x.shape[0] != p.count())
    c.refuse_shape(formatted("the runs have {} rows in all", p.count()));
  index_rules::check_runs(c, p, p.extents.size(), [&](std::size_t i) { return p.extents[i]; });
  Avals avals;
  for (std::int64_t rows : p.extents) avals.push_back(index_rules::with_rows(x, rows, x.weak));
  return avals;
}

Avals pad(const Call& c) {
  const auto& p = c.as<PadParams>();
  const Aval &x = c.operand(0), &value = c.operand(1);
  if (value.dtype != x.dtype) c.refuse_dtype("the padding value has another dtype");
  if (!value.shape.empty()) c.refuse_shape("the padding value must be a scalar");
  const int rank = x.shape.rank();
  index_rules::need_rank(c, p.low, rank, "low");
  index_rules::need_rank(c, p.high, rank, "high");
  index_rules::need_rank(c, p.interior, rank, "interior");
  Shape shape;
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (p.interior[i] < 0)
      c.refuse_shape(formatted("interior {} must not be negative", p.interior.str()));
    const std::int64_t inner = dilated(x.shape[i], plus(p.interior[i], 1));
    // The edges, either of which may crop, first: their sum is exact or as good as the result.
    const std::int64_t extent = plus(inner, plus(p.low[i], p.high[i]));
    if (extent < 0)
      c.refuse_shape(formatted("low {}, high {} crop axis {} to a negative size ({})", p.low.str(),
                               p.high.str(), i, extent));
    shape.push_back(extent);
  }
  return result(x.dtype, std::move(shape), x.weak && value.weak);
}

Avals rev(const Call& c) {
  check_axes(c, c.as<AxesParams>().axes, c.operand(0).shape.rank(), "axes", true);
  return {c.operand(0)};
}

// --- slices --------------------------------------------------------------------------------------

Avals slice(const Call& c) {
  const auto& p = c.as<SliceParams>();
  const Aval& x = c.operand(0);
  const int rank = x.shape.rank();
  index_rules::need_rank(c, p.start, rank, "start");
  index_rules::need_rank(c, p.limit, rank, "limit");
  index_rules::need_rank(c, p.stride, rank, "stride");
  Shape shape;
  for (std::size_t i = 0; i < x.shape.size(); ++i) {
    if (p.stride[i] < 1) c.refuse_shape(formatted("stride {} must be at least 1", p.stride.str()));
    if (p.start[i] < 0 || p.start[i] > p.limit[i] || p.limit[i] > x.shape[i])
      c.refuse_shape(formatted("start {}, limit {} leave axis {} of size {}", p.start.str(),
                               p.limit.str(), i, x.shape[i]));
    const std::int64_t length = p.limit[i] - p.start[i];
    shape.push_back(length / p.stride[i] + (length % p.stride[i] != 0));
  }
  return result(x.dtype, std::move(shape), x.weak);
}

namespace index_rules {
/// The start scalars of the dynamic slices: one integer scalar per axis of the operand.
inline void need_starts(const Call& c, std::size_t first) {
  const std::size_t rank = c.operand(0).shape.size();
  if (c.operands.size() != first + rank)
    c.refuse_shape(formatted("needs one start per axis ({}), not {}", rank,
                             c.operands.size() - std::min(first, c.operands.size())));
  for (std::size_t i = first; i < c.operands.size(); ++i) {
    if (!c.operand(i).shape.empty())
      c.refuse_shape(formatted("start of axis {} must be a scalar", i - first));
    if (!is_int(c.operand(i).dtype))
      c.refuse_dtype(formatted("start of axis {} must be an integer", i - first));
  }
}
}  // namespace index_rules

Avals dynamic_slice(const Call& c) {
  const Shape& sizes = c.as<ShapeParams>().shape;
  if (c.operands.empty()) c.refuse_shape("needs an operand");
  const Aval& x = c.operand(0);
  index_rules::need_rank(c, sizes, x.shape.rank(), "sizes");
  index_rules::need_starts(c, 1);
  for (std::size_t i = 0; i < sizes.size(); ++i)
    if (sizes[i] < 0 || sizes[i] > x.shape[i])
      c.refuse_shape(
          formatted("window {} does not fit in axis {} of size {}", sizes.str(), i, x.shape[i]));
  return result(x.dtype, sizes, x.weak);
}

Avals dynamic_update_slice(const Call& c) {
  if (c.operands.size() < 2) c.refuse_shape("needs an operand and an update");
  const Aval &x = c.operand(0), &update = c.operand(1);
  if (x.dtype != update.dtype) c.refuse_dtype("operand and update have different dtypes");
  if (x.shape.rank() != update.shape.rank())
    c.refuse_shape("operand and update have different ranks");
  index_rules::need_starts(c, 2);
  for (std::size_t i = 0; i < x.shape.size(); ++i)
    if (update.shape[i] > x.shape[i])
      c.refuse_shape(formatted("the update does not fit in axis {} of size {}", i, x.shape[i]));
  return result(x.dtype, x.shape, x.weak && update.weak);
}

// --- gather and scatter --------------------------------------------------------------------------

namespace index_rules {
/// What gather and scatter have in common: how index vectors and batching axes address the operand.
inline void check_index_map(const Call& c, const Aval& indices, const Axes& absent,
                            const char* absent_name, const Axes& map, const char* map_name,
                            const Axes& operand_batching, const Axes& indices_batching) {
  const Aval& x = c.operand(0);
  const int rank = x.shape.rank();
  if (!is_int(indices.dtype))
    c.refuse_dtype(formatted("indices must be integers, not {}", name_of(indices.dtype)));
  if (indices.shape.empty())
    c.refuse_shape("indices need a last axis that holds the index vectors");
  if (static_cast<std::int64_t>(map.size()) != indices.shape.back())
    c.refuse_shape(
        formatted("{} {} does not name one operand axis per component of the index vectors ({})",
                  map_name, map.str(), indices.shape.back()));
  check_axes(c, absent, rank, absent_name, true);
  check_axes(c, map, rank, map_name, false);
  check_axes(c, operand_batching, rank, "operand_batching_dims", true);
  check_axes(c, indices_batching, indices.shape.rank() - 1, "indices_batching_dims", false);
  check_disjoint(c, operand_batching, absent, "operand_batching_dims", absent_name);
  check_disjoint(c, operand_batching, map, "operand_batching_dims", map_name);
  if (operand_batching.size() != indices_batching.size())
    c.refuse_shape(
        formatted("operand_batching_dims {} and indices_batching_dims {} differ in length",
                  operand_batching.str(), indices_batching.str()));
  for (std::size_t k = 0; k < operand_batching.size(); ++k)
    if (x.shape[operand_batching[k]] != indices.shape[indices_batching[k]])
      c.refuse_shape(
          formatted("batching axis {} of the operand and {} of the indices differ in size",
                    operand_batching[k], indices_batching[k]));
}
}  // namespace index_rules

Avals gather(const Call& c) {
  const auto& p = c.as<GatherParams>();
  const Aval &x = c.operand(0), &indices = c.operand(1);
  index_rules::check_index_map(c, indices, p.collapsed_slice_dims, "collapsed_slice_dims",
                               p.start_index_map, "start_index_map", p.operand_batching_dims,
                               p.indices_batching_dims);
  index_rules::need_rank(c, p.slice_sizes, x.shape.rank(), "slice_sizes");
  const std::size_t window_rank =
      x.shape.size() - p.collapsed_slice_dims.size() - p.operand_batching_dims.size();
  if (p.offset_dims.size() != window_rank)
    c.refuse_shape(formatted("offset_dims {} do not name one result axis per window axis ({})",
                             p.offset_dims.str(), window_rank));
  const int result_rank = static_cast<int>(p.offset_dims.size()) + indices.shape.rank() - 1;
  check_axes(c, p.offset_dims, result_rank, "offset_dims", true);

  Shape window;
  for (int d = 0; d < x.shape.rank(); ++d) {
    const std::int64_t size = p.slice_sizes[d];
    if (p.collapsed_slice_dims.contains(d) || p.operand_batching_dims.contains(d)) {
      if (size != 1)
        c.refuse_shape(formatted("slice_sizes {} must be 1 in axis {}, which the result lacks",
                                 p.slice_sizes.str(), d));
    } else {
      window.push_back(size);
    }
  }
  Shape shape;
  std::size_t next_window = 0, next_index = 0;
  for (int d = 0; d < result_rank; ++d)
    shape.push_back(p.offset_dims.contains(d) ? window[next_window++]
                                              : indices.shape[next_index++]);
  check_size(c, x.dtype, shape);
  for (std::size_t d = 0; d < x.shape.size(); ++d)
    // A window of 1 in an empty axis is fine as long as nothing is read.
    if (p.slice_sizes[d] < 0 ||
        (p.slice_sizes[d] > x.shape[d] && !(p.slice_sizes[d] == 1 && shape.elements() == 0)))
      c.refuse_shape(formatted("window {} does not fit in axis {} of size {}", p.slice_sizes.str(),
                               d, x.shape[d]));
  return result(x.dtype, std::move(shape), x.weak);
}

Avals scatter(const Call& c) {
  const auto& p = c.as<ScatterParams>();
  const Aval &x = c.operand(0), &indices = c.operand(1), &updates = c.operand(2);
  c.need_dtype();
  if (x.dtype != updates.dtype) c.refuse_dtype("operand and updates have different dtypes");
  index_rules::check_index_map(c, indices, p.inserted_window_dims, "inserted_window_dims",
                               p.scatter_dims_to_operand_dims, "scatter_dims_to_operand_dims",
                               p.operand_batching_dims, p.indices_batching_dims);
  const int updates_rank = static_cast<int>(p.update_window_dims.size()) + indices.shape.rank() - 1;
  if (updates.shape.rank() != updates_rank)
    c.refuse_shape(formatted("updates must have rank {} ({} window axes and {} of the indices)",
                             updates_rank, p.update_window_dims.size(), indices.shape.rank() - 1));
  check_axes(c, p.update_window_dims, updates_rank, "update_window_dims", true);
  const std::size_t window_rank =
      x.shape.size() - p.inserted_window_dims.size() - p.operand_batching_dims.size();
  if (p.update_window_dims.size() != window_rank)
    c.refuse_shape(
        formatted("update_window_dims {} do not name one axis per window axis of the operand ({})",
                  p.update_window_dims.str(), window_rank));

  std::size_t next_index = 0;
  for (int d = 0; d < updates_rank; ++d) {
    if (p.update_window_dims.contains(d)) continue;
    if (updates.shape[d] != indices.shape[next_index])
      c.refuse_shape(
          formatted("axis {} of the updates and {} of the indices differ in size", d, next_index));
    ++next_index;
  }
  std::size_t next_window = 0;
  for (int d = 0; d < x.shape.rank(); ++d) {
    const bool absent = p.inserted_window_dims.contains(d) || p.operand_batching_dims.contains(d);
    const std::int64_t extent = absent ? 1 : updates.shape[p.update_window_dims[next_window++]];
    // An absent axis of size 0 has nowhere to clip to; dropping is fine.
    if (extent > x.shape[d] && !(absent && (p.mode == IndexMode::fill || updates.elements() == 0)))
      c.refuse_shape(
          formatted("the window of the updates does not fit in axis {} of the operand", d));
  }
  return result(x.dtype, x.shape, x.weak && updates.weak);
}

}  // namespace vt::detail::shape_rules
