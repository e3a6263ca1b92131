// What the processes of a mesh share: which values of a function that they run are the same on all
// of them, written down in its Graph so that derivatives from outside count them once.
#pragma once

#include <cstdint>
#include <span>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Along which axes of a mesh a value differs between processes: a bit for each axis.
using Differs = std::uint32_t;

struct SharedGraph {
  GraphBody graph;
  Vec<Differs> outputs;  ///< of each output
};

/// The same function. In it each collective is `shared`, and where a value that processes share
/// meets one that differs, a spread makes a process's own of it. A psum of what they share is the
/// number of processes times that, without communication.
/// `inputs`: of each input. `wanted`, per output: where it must differ at least.
/// Throws: Error (transform) with the user's line if processes may not agree whether they come to a
/// collective: one in a branch or loop whose predicate differs along its axis.
SharedGraph with_shared_values(const GraphBody&, std::span<const AxisRef> mesh,
                               const Vec<Differs>& inputs, const Vec<Differs>& wanted);

/// What a function outside of shard_map makes of what it is differentiated by.
struct OutsideUse {
  /// Collectives combine what processes give for an input: it is a process's own part.
  bool has_own_inputs = false;
  /// A result is a process's own part, and depends on what all share.
  bool has_own_outputs = false;
  CallSite where;  ///< the line of such a collective
};
/// By a Graph whose last inputs are `tangents`. What differs meets a value that all processes share
/// behind a spread of that; so an input that comes to a collective without one is a process's own.
OutsideUse outside_use(const GraphBody&, std::size_t tangents);

}  // namespace vt::detail
