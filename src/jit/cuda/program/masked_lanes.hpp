// Rewrites loops and branches in which each lane has a predicate of its own into plain ones of all
// lanes under masks.
#pragma once

#include "../../../trace/ir/graph.hpp"

namespace vt::detail::cuda {

/// The same function without equations that have lanes of their own, but for those that become one
/// kernel with a thread for each lane and those with effects, which happen lane by lane. Calls must
/// be inlined.
GraphBody mask_lanes(const GraphBody&);

}  // namespace vt::detail::cuda
