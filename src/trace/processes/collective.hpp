// An equation that is a collective between processes, run on memory.
#pragma once

#include "../ir/graph.hpp"

namespace vt::detail {

/// Runs it in this thread's world. `given`: the operand's elements, none of axis_index; `got`: room
/// for the result's. Throws: Error (transform) over lanes of a vmap; else as World does.
void run_collective(const Equation&, const GraphBody&, const void* given, void* got);

}  // namespace vt::detail
