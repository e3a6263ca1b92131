// Functions made of shard_map, where something outside moves or measures what they take and give.
#pragma once

#include <span>

#include <vt/detail/entry_points.hpp>

#include "shared_values.hpp"

namespace vt::detail {

/// What f makes of the processes' values. Nothing of it runs. All false in a program of one
/// process, inside of shard_map, and behind rules of the user's.
OutsideUse outside_use(const FlatFunction& f, const GradCall&);

/// For a solver, which takes norms and products of what it is given.
/// Throws: Error (transform) if that is a process's own part.
void need_whole(const FlatFunction& f, std::span<const Tensor> unknowns, const char* function,
                CallSite where);

}  // namespace vt::detail
