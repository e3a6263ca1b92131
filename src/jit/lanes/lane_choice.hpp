// How the lanes of a lane call run.
#pragma once

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Does each lane go its own way, rather than in groups?
bool lanes_part(const Equation& lane_call, std::int64_t frame);
/// … on a device, where queues cost more than masks?
bool lanes_part_on_device(const Equation& lane_call);

}  // namespace vt::detail
