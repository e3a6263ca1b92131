// Scheduling: for each stage of a nest the order of its loops, which one is the vector loop and how
// reductions use it; for the whole nest the loop that threads share. Decided by shapes and target
// alone, and printed with the nest.
#pragma once

#include <string>

#include <vt/detail/small_vec.hpp>

#include "cost_model.hpp"
#include "loop_nest.hpp"

namespace vt::detail {

struct StageSchedule {
  enum class Mode : std::uint8_t {
    elementwise,  ///< no reduction; the vector loop is innermost
    horizontal,   ///< SIMD lanes go along a reduce loop and are combined at its end
    vertical,     ///< SIMD lanes go along an ordinary loop; accumulators lie in a local array
  } mode = Mode::elementwise;
  /// loops, outermost first; vertical: without the vector loop, ordinary ones first
  SmallVec<int, 6> order;
  int vector_loop = -1;  ///< −1: one SIMD lane
  /// some arrays lie along this loop instead; they are read, those of a fold also written, in
  /// square tiles and transposed
  int tile_loop = -1;
  int accumulators = 1;  ///< horizontal: independent ones; vertical: rows taken at a time
  /// with a tile loop: squares along the vector loop before the next ones along the tile loop
  int tiles_in_a_row = 4;
  /// element-wise, with a tile loop: squares along the vector loop that are transposed before lines
  /// of them are written
  int block_along = 1;
  /// … and along the tile loop, so that of each row that many vectors are read on end
  int block_across = 1;
  bool narrow = false;  ///< vertical: one vector of columns at a time, as SIMD lanes jump
  /// one body whose SIMD lanes are masked, instead of a body and a masked tail
  bool masked = false;
  /// what the next tiles read, or a horizontal stage in the next iteration of the shared loops, is
  /// asked for in advance
  bool fetch_ahead = false;
  bool stream = false;  ///< whole vectors are stored past the caches
};

struct Schedule {
  int simd_lanes = 1;
  int registers = 1;       ///< that the SIMD lanes of the widest usual value fill
  int parallel_loop = -1;  ///< −1: the kernel runs on one thread
  /// extents and distances are read at run time, so that arrays of other sizes have the same code
  bool any_sizes = false;
  Vec<StageSchedule> stages;
  std::string str(const Nest&) const;
};

/// How an index moves from SIMD lane to SIMD lane of a vector along `loop`.
struct SimdStep {
  bool regular = false;
  std::int64_t step = 0;  ///< 0: the same for all SIMD lanes
};
SimdStep simd_step(const Nest&, IndexId, int loop, int simd_lanes,
                   const Vec<std::uint64_t>& dependences);

/// Most arrays that are interleaved in one.
inline constexpr std::int64_t most_interleaved = 4;
/// Stores that jump from SIMD lane to SIMD lane of `loop` and together leave no gap: `s` and those
/// that lie between its elements, in the order of memory;
/// empty: there are none such.
SmallVec<const NestStore*, 4> interleaved_with(const Nest&, const NestStore& s, int loop,
                                               int simd_lanes,
                                               const Vec<std::uint64_t>& dependences);

/// Does an array lie along the tile loop, and jump from SIMD lane to SIMD lane of the vector loop?
bool lies_transposed(const Nest&, IndexId, const StageSchedule&, int simd_lanes,
                     const Vec<std::uint64_t>& dependences);
/// Is this load read through transposed tiles?
bool reads_transposed(const Nest&, const NestValue&, const StageSchedule&, int simd_lanes,
                      const Vec<std::uint64_t>& dependences);

/// `costs` decide nothing that could change a bit of a result. `log`: each decision, a line for
/// each, with what it was chosen over.
Schedule choose_schedule(const Nest&, int vector_bytes, const MachineCosts& costs = {},
                         std::string* log = nullptr);

/// A reduce loop to be cut into blocks of `block` iterations that are reduced on their own first,
/// for accuracy and for threads. loop −1: none.
struct ReductionCut {
  int loop = -1;
  std::int64_t block = 0;
};
ReductionCut find_reduction_cut(const Nest&, const Schedule&);

}  // namespace vt::detail
