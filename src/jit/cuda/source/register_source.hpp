// Register kernels as CUDA text: one thread per lane, with its own loops and branches.
#pragma once

#include <optional>
#include <string>

#include "../../regions/lane_form.hpp"
#include "../../regions/register_kernel.hpp"
#include "../driver/launch_grid.hpp"

namespace vt::detail::cuda {

/// What a kernel of one thread for each lane may hold.
const RegisterLimits& device_limits();
/// The equation in the form of one kernel that keeps its values in registers, with a thread for
/// each lane, if it can be compiled so.
std::optional<LaneForm> form_in_registers(const GraphBody& alone);
/// A kernel `name(operands…, results…)` for what fits_registers. Large carries are updated in the
/// memory of the results, which hold their first values.
std::string register_kernel_source(const LaneForm& form, const std::string& name);
inline constexpr int register_kernel_threads = 64;  ///< of a block
LaunchGrid register_kernel_grid(const LaneForm& form);
/// Is anything carried larger than what registers hold?
bool carries_memory(const LaneForm& form);

}  // namespace vt::detail::cuda
