// Counters of the programs whose lanes go their own ways: what vt::lane_stats() tells.
#include "lane_counters.hpp"

#include <mutex>
#include <ostream>

#include <vt/detail/message.hpp>

#include "../../trace/base/locks.hpp"

namespace vt::detail {

namespace lane_counts {

struct All {
  Mutex mutex;
  Vec<std::shared_ptr<LaneCounters>> list;
};
All& all() {
  static All* const made = new All;  // programs may run while the process ends
  return *made;
}

double ratio(double lanes, double places) { return places > 0 ? lanes / places : 1; }

}  // namespace lane_counts

LaneCounters::LaneCounters(std::vector<LaneBlock> blocks)
    : blocks_(std::move(blocks)), counts_(new Counts[blocks_.size()]) {}

void LaneCounters::count(std::size_t block, std::uint64_t lanes, std::uint64_t places,
                         std::uint64_t depths, std::uint64_t executions) {
  Counts& c = counts_[block];
  c.executions.fetch_add(executions, std::memory_order_relaxed);
  c.lanes.fetch_add(lanes, std::memory_order_relaxed);
  c.places.fetch_add(places, std::memory_order_relaxed);
  std::uint64_t most = c.most_depths.load(std::memory_order_relaxed);
  while (most < depths &&
         !c.most_depths.compare_exchange_weak(most, depths, std::memory_order_relaxed)) {
  }
}

void LaneCounters::add_to(LaneStats& stats) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    LaneBlock b = blocks_[i];
    b.executions = counts_[i].executions.load(std::memory_order_relaxed);
    b.lanes = counts_[i].lanes.load(std::memory_order_relaxed);
    b.places = counts_[i].places.load(std::memory_order_relaxed);
    b.most_depths = counts_[i].most_depths.load(std::memory_order_relaxed);
    if (b.executions) stats.blocks.push_back(std::move(b));
  }
  stats.pushes += pushes_.load(std::memory_order_relaxed);
}

void LaneCounters::reset() {
  for (std::size_t i = 0; i < blocks_.size(); ++i)
    for (auto* c :
         {&counts_[i].executions, &counts_[i].lanes, &counts_[i].places, &counts_[i].most_depths})
      c->store(0, std::memory_order_relaxed);
  pushes_.store(0, std::memory_order_relaxed);
}

std::shared_ptr<LaneCounters> lane_counters(std::vector<LaneBlock> blocks) {
  auto made = std::make_shared<LaneCounters>(std::move(blocks));
  const std::lock_guard lock(lane_counts::all().mutex);
  lane_counts::all().list.push_back(made);
  return made;
}

}  // namespace vt::detail

namespace vt {

double LaneBlock::utilisation() const {
  return detail::lane_counts::ratio(static_cast<double>(lanes), static_cast<double>(places));
}

double LaneStats::utilisation() const {
  double lanes = 0, places = 0;
  for (const LaneBlock& b : blocks) {
    lanes += b.operations_of_lane * static_cast<double>(b.lanes);
    places += b.operations_of_lane * static_cast<double>(b.places);
  }
  return detail::lane_counts::ratio(lanes, places);
}

std::string detail::text_of(const LaneStats& stats) { return stats.str(); }
std::string LaneStats::str() const {
  std::string text;
  for (const LaneBlock& b : blocks)
    text +=
        detail::formatted("{}{}: {} executions of {:.1f} lanes, {:.0f} % of the places{}\n",
                          b.function.empty() ? "" : b.function + ": ", b.operations, b.executions,
                          static_cast<double>(b.lanes) / static_cast<double>(b.executions),
                          100 * b.utilisation(), detail::at(b.where));
  return text + detail::formatted("utilisation {:.3f}, {} values saved\n", utilisation(), pushes);
}

LaneStats lane_stats() {
  LaneStats stats;
  const std::lock_guard lock(detail::lane_counts::all().mutex);
  for (const auto& counters : detail::lane_counts::all().list) counters->add_to(stats);
  return stats;
}
void reset_lane_stats() {
  auto& all = detail::lane_counts::all();
  const std::lock_guard lock(all.mutex);
  // Of programs that are gone there is nothing left to tell.
  erase_if(all.list, [](const auto& counters) { return counters.use_count() == 1; });
  for (const auto& counters : all.list) counters->reset();
}
std::ostream& operator<<(std::ostream& out, const LaneStats& stats) { return out << stats.str(); }

}  // namespace vt
