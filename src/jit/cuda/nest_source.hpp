// From a loop nest to a CUDA kernel: how its loops are shared out among blocks and threads, and its text.
#pragma once

#include <cstdint>
#include <string>

#include <vt/small_vec.hpp>

#include "../loop_nest.hpp"

namespace vt::detail::cuda {

/// A team is the threads that work together on one round of the loops that are shared out: one thread, a warp, or a block.
struct Mapping {
  SmallVec<int, 6> shared;       ///< loops whose rounds are shared out among teams, outermost first
  int team = 1;                  ///< threads: 1, 32, or a multiple of 32 that is a whole block
  int block = 256;               ///< threads of a block
  std::int64_t teams = 1;        ///< rounds in all
  std::int64_t local_bytes = 0;  ///< of a team's own arrays in shared memory
  bool wide_indices = false;     ///< offsets of 64 bits
  int teams_in_block() const { return block / team; }
  std::int64_t blocks() const { return (teams + teams_in_block() - 1) / teams_in_block(); }
  std::string str(const Nest&) const;
};
/// From shapes alone, so that results do not depend on the device.
Mapping choose_mapping(const Nest&);

/// A kernel `extern "C" __global__ void name(buffers…, runtime extents…, arguments…)`, behind the prelude. Pointers to the buffers that are not
/// local in the nest's order, then `long long` each.
std::string nest_source(const Nest&, const Mapping&, const std::string& name);

}  // namespace vt::detail::cuda
