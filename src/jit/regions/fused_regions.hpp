// Fused regions: neighbouring equations, as vmap of a small function leaves them, that become one
// equation for a register kernel. Each lane goes all the way through at once.
#pragma once

#include "../../trace/ir/graph.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

/// The Graph with such regions as conds of one branch, with lanes. Others stay as they are: what is
/// fused in loop nests anyway, and what has too many elements for each lane.
GraphBody form_fused_regions(GraphBody graph, const RegisterLimits& limits = {});

/// VT_LANES=groups: lanes that go different ways are always grouped, never run side by side under
/// masks.
bool lanes_in_groups();

}  // namespace vt::detail
