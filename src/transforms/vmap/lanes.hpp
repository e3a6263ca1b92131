// What the batch rules share: moving and adding the axis of lanes, shifting axis numbers past it,
// and recognising the loop index.
#pragma once

#include "batch_rules.hpp"

namespace vt::detail::lanes {

/// Extents with `extent` inserted before position `at`.
Shape inserted(const Shape& shape, int at, std::int64_t extent);
/// Extents without position `at`.
Shape removed(const Shape& shape, int at);
/// One lane's axis number in an array whose lanes lie at `axis`.
inline int shifted(int lane_axis, int axis) { return lane_axis + (lane_axis >= axis); }
Axes shifted(const Axes& lane_axes, int axis);

/// Moves one axis; the others keep their order.
Tensor moved(const Tensor& x, int from, int to, CallSite where);
/// A value that is the same for every lane, repeated along a new axis `axis`.
Tensor broadcast(const Tensor& x, std::int64_t lanes, int axis, CallSite where);
/// The value with its lanes at `axis`, mapped or not before.
Tensor at_axis(const Batched& x, int axis, std::int64_t lanes, CallSite where);
/// What one lane sees of it.
Aval lane_aval(const Batched& x);

/// broadcast_in_dim of a mapped value; no axis is moved.
Batched broadcast(const Batched& x, const Shape& lane_shape, const Axes& lane_axes, CallSite where);

/// Where every element of lane l holds scale · l + offset, as the index of a parallel loop does.
struct LaneIndex {
  std::int64_t scale, offset;
  std::int64_t at(std::int64_t lane) const { return scale * lane + offset; }
  std::int64_t least(std::int64_t lanes) const { return scale < 0 ? at(lanes - 1) : offset; }
  std::int64_t most(std::int64_t lanes) const { return scale < 0 ? offset : at(lanes - 1); }
};
std::optional<LaneIndex> lane_index(const Batched& x, std::int64_t lanes);
/// The integer (or bool) that every element of an unmapped value holds, if it was made by `full`.
std::optional<std::int64_t> known_integer(const Batched& x);
/// x sliced along `axis` so that element l is what lane l's index addresses; nothing if an index is
/// out of range.
std::optional<Tensor> by_lane(const Tensor& x, int axis, const LaneIndex& index, std::int64_t lanes,
                              CallSite where);

}  // namespace vt::detail::lanes
