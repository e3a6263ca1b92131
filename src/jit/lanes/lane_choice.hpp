// How the lanes of a lane call run.
#pragma once

#include <vt/detail/function.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Does each lane go its own way, rather than in groups? `compiled_in_groups`: would all its
/// recursions be compiled functions there? `as_it_runs`: its body, simplified for that.
bool lanes_part(const Equation& lane_call, FunctionRef<bool()> compiled_in_groups,
                FunctionRef<GraphBody()> as_it_runs);
/// … on a device, where queues cost more than masks?
bool lanes_part_on_device(const Equation& lane_call);

}  // namespace vt::detail
