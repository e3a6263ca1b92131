// Counters of the programs whose lanes go their own ways: what vt::lane_stats() tells.
#pragma once

#include <atomic>
#include <memory>

#include <vt/detail/small_vec.hpp>
#include <vt/lanes.hpp>

namespace vt::detail {

/// What a compiled function counts in which lanes take each other's places: iterations of a vector
/// of places, lanes and places in all of them together.
struct CountedIterations {
  std::int64_t executions = 0, lanes = 0, places = 0;
};

/// Those of one program, which any thread may add to. They stay when the program is gone.
class LaneCounters {
 public:
  explicit LaneCounters(std::vector<LaneBlock> blocks);
  void count(std::size_t block, std::uint64_t lanes, std::uint64_t places, std::uint64_t depths,
             std::uint64_t executions = 1);
  void count_pushes(std::uint64_t values) { pushes_.fetch_add(values, std::memory_order_relaxed); }
  void add_to(LaneStats&) const;
  void reset();

 private:
  struct Counts {
    std::atomic<std::uint64_t> executions{0}, lanes{0}, places{0}, most_depths{0};
  };
  const std::vector<LaneBlock> blocks_;
  const std::unique_ptr<Counts[]> counts_;
  std::atomic<std::uint64_t> pushes_{0};
};
/// Counters that lane_stats() tells from now on.
std::shared_ptr<LaneCounters> lane_counters(std::vector<LaneBlock> blocks);

}  // namespace vt::detail
