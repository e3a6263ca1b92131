// How a loop nest's loops are shared out among the blocks and threads of a kernel.
#pragma once

#include <cstdint>
#include <string>

#include <vt/small_vec.hpp>

#include "../loop_nest.hpp"

namespace vt::detail::cuda {

/// How the updates of a nest are made, which may meet at one element.
struct UpdatePlan {
  enum class Way : std::uint8_t {
    apart,     ///< they never meet, or there are none
    atomic,    ///< at once, each by one instruction: the result does not depend on the order
    in_order,  ///< one after the other
    sorted,    ///< by element; see scatter.hpp
  } way = Way::apart;
  /// Rounds of the window loops never meet; those of the key loops may, and go in the order of these loops where they do.
  SmallVec<int, 6> key_loops, window_loops;
};

/// A team is the threads that work together on one round of the loops that are shared out: one thread, a warp, or a block.
struct Mapping {
  SmallVec<int, 6> shared;       ///< loops whose rounds are shared out among teams, outermost first
  int team = 1;                  ///< threads: 1, 32, or a multiple of 32 that is a whole block
  int block = 256;               ///< threads of a block
  std::int64_t teams = 1;        ///< rounds in all
  std::int64_t local_bytes = 0;  ///< of a team's own arrays in shared memory
  UpdatePlan::Way updates = UpdatePlan::Way::apart;
  bool wide_indices = false;  ///< offsets of 64 bits
  int teams_in_block() const { return block / team; }
  std::int64_t blocks() const { return (teams + teams_in_block() - 1) / teams_in_block(); }
  std::string str(const Nest&) const;
};
/// From shapes alone, so that results do not depend on the device.
/// `unique`: the user promises that no element is updated twice. Updates that are to be sorted have no mapping; see scatter.hpp.
Mapping choose_mapping(const Nest&, bool unique = false);

/// Rounds of some loops together, with their present extents.
double rounds_of(const Nest&, const SmallVec<int, 6>& loops);

}  // namespace vt::detail::cuda
