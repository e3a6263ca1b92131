// Estimated times of a device's work, in nanoseconds, from published figures of data-centre
// devices, not measured. They decide what runs where and in which order a row is summed; so they
// are the same for every device.
#pragma once

#include <cstdint>

namespace vt::detail::cuda::device_costs {

constexpr double graph_node = 1500;      ///< a kernel behind another one in a graph
constexpr double graph_decision = 4000;  ///< what a conditional node adds to an iteration
constexpr double launch = 5000;          ///< a kernel that the host gives to the stream
/// until the host has seen a value, and the device hears from it again
constexpr double wait = 20000;

constexpr double block_step = 600;  ///< a step of a kernel of one block, with its barrier
/// that one block does in a nanosecond, mostly waiting for memory
constexpr double block_operations = 20;
constexpr std::int64_t most_in_graph = 512;  ///< nodes: graphs of more take long to make

// A device of a usual size, which the cutting of rows goes by.
constexpr double usual_threads = 100 * 2048;
constexpr double usual_bandwidth = 2000;    ///< bytes in a nanosecond
constexpr double usual_instructions = 500;  ///< of a warp each, in a nanosecond
/// until the next element of a row is there, with some on their way
constexpr double load_wait = 100;
constexpr double shuffle = 16, barrier = 40, shared_read = 15;
constexpr double round_instructions = 8, tree_instructions = 20;

/// An iteration of so many steps that do `operations` in all (on elements, by all threads), in one
/// kernel of one block.
constexpr double in_one_block(std::int64_t steps, double operations) {
  return static_cast<double>(steps) * block_step + operations / block_operations;
}

}  // namespace vt::detail::cuda::device_costs
