// How a loop nest's loops are shared out among the blocks and threads of a kernel.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../nest/loop_nest.hpp"
#include "group_choice.hpp"
#include "update_plan.hpp"

namespace vt::detail::cuda {

/// A thread group is the threads that work together on one iteration of the loops that are shared
/// out: one thread, a warp, a block, or a column of a block. What is known of a device when work is
/// shared out.
struct DeviceShape {
  int multiprocessors = 100;
  int threads = 2048;  ///< that one of them holds
};
struct Mapping {
  /// loops whose iterations are shared out among thread groups, outermost first
  SmallVec<int, 6> shared;
  /// threads: 1, 32, or a multiple of 32 that is a whole block; of a column any number
  int thread_group = 1;
  int block = 256;                 ///< threads of a block
  std::int64_t thread_groups = 1;  ///< iterations in all
  std::int64_t local_bytes = 0;    ///< of a thread group's own arrays in shared memory
  UpdatePlan::Way updates = UpdatePlan::Way::apart;
  /// neighbouring elements of the last shared loop that a thread takes at a time; where they lie
  /// densely by accesses of 16 bytes
  int vector = 1;
  bool wide_indices = false;  ///< offsets of 64 bits
  int thread_groups_in_block() const { return block / thread_group; }
  /// ≥ 0: blocks take squares of 32 × 32 iterations of this loop and the last shared one, as some
  /// arrays lie along this one
  int tile_loop = -1;
  /// > 1: so many thread groups of a block lie side by side, so that their first threads are
  /// neighbours, too
  int columns = 1;
  std::int64_t tiles = 0;
  ThreadGroupChoice choice;  ///< where a row is reduced; else its time is 0
  /// blocks for each that a device holds: with more, each would be over at once
  static constexpr std::int64_t times_over = 4;
  std::int64_t most_blocks = 0;  ///< so many, if threads alone limit them
  /// More would have no iterations.
  std::int64_t useful_blocks() const {
    const std::int64_t iterations = (thread_groups + vector - 1) / vector;
    return tile_loop >= 0 ? tiles
                          : (iterations + thread_groups_in_block() - 1) / thread_groups_in_block();
  }
  std::int64_t blocks() const { return std::min(useful_blocks(), most_blocks); }
  std::string str(const Nest&) const;
};
/// What decides over results (thread groups, and so the order of sums) follows from the nest's
/// shapes alone, the rest from the device, too. `unique`: the user promises that no element is
/// updated twice. Updates that are to be sorted have no mapping; see scatter.hpp.
Mapping choose_mapping(const Nest&, bool unique = false, const DeviceShape& = {});
/// Is an element read or written densely along the last shared loop, and its first of each `vector`
/// where as many begin? Then they are one access.
bool is_packed(const Nest&, const Mapping&, int vector, IndexId index);
/// Does an array that is read at `index` lie along loop `a`, and jump from iteration to iteration
/// of loop `b`?
bool lies_along(const Nest&, IndexId index, int a, int b);
/// Iterations of some loops together, with their present extents.
double iterations_of(const Nest&, const SmallVec<int, 6>& loops);

}  // namespace vt::detail::cuda
