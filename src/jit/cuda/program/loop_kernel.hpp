// Loops and branches with small bodies as one kernel of one block, in which the kernels of their
// steps are functions.
#pragma once

#include <cstdint>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "replay_list.hpp"

namespace vt::detail::cuda {

struct LoopKernel {
  std::string source;  ///< empty: what `list` does cannot be one kernel
  DeviceCode::Grid grid;
  /// the kernel's last parameters, behind pointers to `bases` buffers and to scratch memory
  Vec<DevicePtr> fixed;
  std::int64_t steps = 0;  ///< of one iteration, without inner loops' further iterations …
  double operations = 0;   ///< … and what they do
};

/// A kernel `name` that does what `list` does, which was written for one
/// (`ReplayList::for_kernel`), with these bases.
LoopKernel loop_kernel(const ReplayList& list, std::size_t bases, const std::string& name);

/// Is that worth it? `iterations`: as many as the host knows of; 0: the device decides.
/// `conditions`: graphs have loops.
bool is_worth_a_kernel(const LoopKernel&, std::int64_t iterations, bool conditions);

}  // namespace vt::detail::cuda
