// Register kernels as CUDA text: one thread per lane, with its own loops and branches.
#pragma once

#include <string>

#include "../../regions/lane_form.hpp"
#include "../driver/launch_grid.hpp"

namespace vt::detail::cuda {

/// A kernel `name(operands…, results…)` for what fits_registers. Large carries are updated in the
/// memory of the results, which hold their first values.
std::string register_kernel_source(const LaneForm& form, const std::string& name);
inline constexpr int register_kernel_threads = 64;  ///< of a block
LaunchGrid register_kernel_grid(const LaneForm& form);
/// Is anything carried larger than what registers hold?
bool carries_memory(const LaneForm& form);

}  // namespace vt::detail::cuda
