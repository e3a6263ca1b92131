// How the lanes of a lane call run on the host.
#pragma once

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Does each lane go its own way, rather than in groups?
bool lanes_part(const Equation& lane_call);

}  // namespace vt::detail
