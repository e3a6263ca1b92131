// Emission: a schedule of nodes as batched calls in the current scope.
#pragma once

#include <span>
#include <vector>

#include "nodes.hpp"
#include "schedule.hpp"

namespace vt::detail::autobatching {

/// The results of `graph` on `inputs`, one batched call for each group. Orders the nodes of each
/// group so that what they read lies side by side, where it can. Fills in what of `stats` is known
/// then.
std::vector<Tensor> emit_schedule(const GraphBody& graph, const NodeGraph& nodes,
                                  NodeSchedule schedule, std::span<const Tensor> inputs,
                                  BatchStats& stats);

}  // namespace vt::detail::autobatching
