// How the lanes of vmap run where they go different ways: schedules, places where they wait for
// each other, and counters.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include <vt/tensor.hpp>

namespace vt {

/// In which order lanes go through loops, branches and recursion that differ between them. Results
/// are the same but for rounding.
enum class LaneSchedule : std::uint8_t {
  automatic,        ///< the one that should be fastest
  groups,           ///< those that go the same way run together, and wait where ways join again
  hybrid,           ///< those that wait at the same operation run together; the host keeps queues
  program_counter,  ///< as hybrid where something is expensive; else by compiled code alone
};

/// x. The lanes of a vmap wait here for each other, where their schedule lets lanes go their own
/// ways (hybrid, program_counter): none goes on before all others are here too or have ended. Of
/// use in front of expensive operations that lanes would reach at different times. One lane, and
/// lanes in groups, never wait.
[[nodiscard]] Tensor meeting(Operand x);

/// What has run at one place of programs whose lanes wait in queues, each at its own place, or in a
/// loop that is one compiled function.
struct LaneBlock {
  std::string function;           ///< the recursive or called function; empty: none
  std::string operations;         ///< in short: "dot_general, 3 more"
  CallSite where;                 ///< the user's line
  bool queue = true;              ///< lanes wait for it; false: a loop that is one function
  bool heavy = false;             ///< worth waiting for other lanes
  std::uint64_t executions = 0;   ///< how often it ran
  std::uint64_t lanes = 0;        ///< in all of them together
  std::uint64_t places = 0;       ///< lanes that there was room for, likewise
  std::uint64_t most_depths = 0;  ///< different depths of recursion in one execution, at most
  double operations_of_lane = 0;  ///< element operations, about
  /// lanes / places
  double utilisation() const;
};
/// Counters of lanes in queues and in loops, since the process began or since
/// reset_lane_stats(), over all threads.
struct LaneStats {
  std::vector<LaneBlock> blocks;  ///< those that ran
  std::uint64_t pushes = 0;       ///< values saved on lanes' stacks
  /// Lanes that did something, of those that there was room for; blocks weigh what they compute.
  /// 1 where nothing ran.
  double utilisation() const;
  /// A line for each block.
  std::string str() const;
};
[[nodiscard]] LaneStats lane_stats();
std::ostream& operator<<(std::ostream&, const LaneStats&);  ///< its str()
namespace detail {
std::string text_of(const LaneStats&);
}
void reset_lane_stats();

}  // namespace vt
