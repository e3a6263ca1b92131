// Lanes of which only the first n run: what a lane does happens in branches that the others do not
// take, and where lanes meet, the others bring what changes nothing.
#pragma once

#include "batch.hpp"

namespace vt::detail {

/// Which lanes run: an axis of lanes of its own, or one block of it.
struct ActiveLanes {
  Tensor runs;        ///< bool[lanes]
  Tensor any;         ///< bool[]: does one of them run?
  Tensor lane_index;  ///< i32[lanes]: 1 where a lane runs, to choose a branch by
  Tensor any_index;   ///< i32[]: 1 if any lane runs
  Tensor count;       ///< i32[]: how many run, of all blocks
};

/// Of lanes first … first + lanes − 1, those below `n`, an i32[].
ActiveRef active_lanes(const Tensor& n, std::int64_t first, std::int64_t lanes, CallSite);

/// x with lanes at axis 0, and `other` in the place of what lanes have that do not run.
Tensor where_active(const ActiveLanes&, const Batched& x, const Scalar& other, std::int64_t lanes,
                    CallSite);

/// As batch_graph, for lanes of which some run. What differs between lanes is computed in a branch
/// that lanes take which run, but for reads at the lane's index; all else in one that is taken if
/// any of them does. What comes out of the lanes' branch is 0 for those that do not run, other
/// results are what they are: `zero`, if it is given, says of each which of the two holds.
Vec<Batched> batch_active(const GraphBody& graph, std::span<const Batched> inputs,
                          std::int64_t lanes, const LaneAxis& axis, Vec<bool>* zero = nullptr);

}  // namespace vt::detail
