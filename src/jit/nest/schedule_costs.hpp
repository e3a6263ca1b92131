// What the decisions of a schedule go by: the body of a stage, its cost with SIMD lanes along a
// given loop, tiles it could be read in, its bytes.
#pragma once

#include "schedule.hpp"

namespace vt::detail::scheduling {

inline const NestLoop& loop_of(const Nest& nest, int l) { return nest.loops[l]; }

/// What a stage computes and stores in each iteration of its loops, or `after` them.
struct Body {
  Vec<int> values;
  Vec<const NestStore*> stores;
};
Body body_of(const Nest&, int stage, bool after);

/// About the time of one element with SIMD lanes along `loop`, in units of a vector addition.
/// `transposed`: jumping accesses go through transposed squares.
double cost_along(const Nest&, const Body&, int loop, int simd_lanes,
                  const Vec<std::uint64_t>& dependences, bool horizontal, bool transposed,
                  const MachineCosts&);
/// Do all accesses step from SIMD lane to SIMD lane of `loop` by one element or none?
bool all_contiguous(const Nest&, const Body&, int loop, int simd_lanes,
                    const Vec<std::uint64_t>& dependences);
/// Iterations that build on each other along rows of memory, SIMD lanes along `loop`: the reduce
/// loop for whose squares every access is transposed that is not contiguous; −1: there is none.
int find_fold_tile(const Nest&, const Body&, const NestStage&, int loop, int simd_lanes,
                   const Vec<std::uint64_t>& dependences);
/// The loop along which most of the operands lie that jump along the vector loop; −1: there are
/// none, or it is too short.
int find_tile_loop(const Nest&, const Body&, StageSchedule, int simd_lanes,
                   const Vec<std::uint64_t>& dependences);
/// Gathers transposed squares to blocks, where their rows are parts of cache lines.
void choose_block(const Nest&, const Body&, StageSchedule&, int simd_lanes,
                  const Vec<std::uint64_t>& dependences);
/// Does the body store nothing but results on end that are neither read in this kernel nor may lie
/// where an operand does? What was read is in the caches, which stores past them would have to ask
/// first.
bool stores_on_end(const Nest&, const Body&, int loop, int simd_lanes,
                   const Vec<std::uint64_t>& dependences);
/// About the bytes that the stage reads and writes; arrays that are read along some of the loops
/// only count for those.
std::int64_t bytes_of(const Nest&, const Body&, const NestStage&,
                      const Vec<std::uint64_t>& dependences);
/// Updates must come in the loops' order, and no two SIMD lanes may update one element: SIMD lanes
/// can only go along the innermost loop, and only where the index moves with it in a known way.
bool keeps_update_order(const Nest&, const Body&, const NestStage&, int loop, int simd_lanes,
                        const Vec<std::uint64_t>& dependences);

/// What the decisions of a stage look at.
struct StageFacts {
  Body body;
  bool reduces = false, finds_position = false, extreme = false, folds = false, updates = false;
  int running = 0;  ///< reductions whose result so far is used
  /// iterations wait for each other long enough that squares are worth turning
  bool in_order = true;
  int weight = 0;  ///< work of an iteration
  int innermost_reduce = -1;
  std::int64_t bytes = 0;
  bool one_by_one() const { return running > 0 || folds; }
};
StageFacts facts_of(const Nest&, int stage, const Vec<std::uint64_t>& dependences);

}  // namespace vt::detail::scheduling
