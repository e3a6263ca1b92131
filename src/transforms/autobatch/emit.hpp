// Emission: a schedule of nodes as batched calls in the current scope.
#pragma once

#include <span>
#include <vector>

#include "nodes.hpp"
#include "schedule.hpp"

namespace vt::detail::autobatching {

/// Where a value is: row `row` of `array`; with row −1 it is `array` itself. With an axis it is
/// `rows` rows from there on, which lie one behind the other along that axis.
struct ValuePlace {
  Tensor array;
  std::int64_t row = -1, rows = 1;
  int axis = -1;
  /// It by itself.
  Tensor value(const Aval& aval, CallSite where) const;
};

/// The results of the Graph of `nodes` on `inputs`, one batched call for each group. Orders the
/// nodes of each group so that what they read lies side by side, where it can. Fills in what of
/// `stats` is known then.
std::vector<Tensor> emit_schedule(const NodeGraph& nodes, NodeSchedule schedule,
                                  std::span<const Tensor> inputs, BatchStats& stats);

/// The same for `wanted`, where they come to lie. `given`: the last inputs.
std::vector<ValuePlace> emit_places(const NodeGraph& nodes, NodeSchedule schedule,
                                    std::span<const Tensor> inputs,
                                    std::span<const ValuePlace> given, std::span<const Var> wanted,
                                    BatchStats& stats);

/// How many signatures have a function that has not been emitted before.
std::size_t new_functions(const NodeGraph& nodes);

}  // namespace vt::detail::autobatching
