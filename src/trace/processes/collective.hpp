// An equation that is a collective between processes, run on memory.
#pragma once

#include <vt/detail/function.hpp>

#include "../ir/graph.hpp"

namespace vt::detail {

/// Runs it in this thread's world. `given`: the operand's elements, none of axis_index; `got`: room
/// for the result's. Throws: Error (transform) over lanes of a vmap; else as World does.
void run_collective(const Equation&, const GraphBody&, const void* given, void* got);
/// A ppermute in two: the first begins it, with both arrays its own until the second has waited for
/// it.
void begin_collective(const Equation&, const GraphBody&, const void* given, void* got);
void finish_collective(const Equation&, const GraphBody&, void* got);
/// A run of a Graph with collectives, from the beginning on, as a call of this thread's world.
/// Throws: Error (value) unless the world has as many ranks as the Graph was recorded for; what
/// `run` throws, of which the others are told.
void run_collectives(const GraphBody&, FunctionRef<void()> run);
/// Waits for all that were begun and not finished, after an error of this rank; drops those that do
/// not end. Never throws.
void end_collectives() noexcept;

}  // namespace vt::detail
