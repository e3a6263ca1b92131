// batch_graph: walks a Graph with some inputs carrying an extra axis of lanes, and emits the
// equations for all lanes at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"
#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"

namespace vt::detail {

/// A value of all lanes: `axis` is where the lanes lie in it, or nothing when every lane has the
/// same value.
struct Batched {
  Tensor value;
  std::optional<int> axis;
};
using BatchedList = SmallVec<Batched, 1>;

struct ActiveLanes;
using ActiveRef = std::shared_ptr<const ActiveLanes>;
/// The lanes that a Graph is walked for: their name, if they have one, and which of them run, if
/// not all do.
struct LaneAxis {
  AxisRef name = {};
  ActiveRef active = {};
};

/// The results of `graph` for `lanes` lanes, those of `axis`. `inputs`: one per Graph input.
/// Equations are recorded in the current scope; those that see no mapped operand are recorded once,
/// as they are.
Vec<Batched> batch_graph(const GraphBody& graph, std::span<const Batched> inputs,
                         std::int64_t lanes, const LaneAxis& axis = {});

/// Arguments with, for lanes that have a name, the index of the lane behind them.
Vec<Batched> with_lane_index(std::span<const Batched> arguments, const AxisRef& axis);
/// Records `f` for one lane of `arguments`, which come with_lane_index. Only the mapped ones become
/// inputs: the others are handed to `f` as they are, so that what depends on them alone is recorded
/// outside, once. `streams`: the caller knows about LaneStreams. `closed`: that, too, is recorded
/// inside.
Recorded record_lane(const FlatFunction& f, std::span<const Batched> arguments, const AxisRef& axis,
                     const char* transform, CallSite where = {}, bool streams = false,
                     bool closed = false);
/// Walks what record_lane recorded, for these arguments (or a block of their lanes). `zero`: see
/// batch_active.
Vec<Batched> batch_recorded(const Recorded& lane, std::span<const Batched> arguments,
                            std::int64_t lanes, const LaneAxis& axis, Vec<bool>* zero = nullptr);
/// Both, for plain arguments. The results lie wherever the rules put the lanes.
Vec<Batched> batch_function(const FlatFunction& f, std::span<const Batched> arguments,
                            std::int64_t lanes, const char* transform, const LaneAxis& axis = {});

}  // namespace vt::detail
