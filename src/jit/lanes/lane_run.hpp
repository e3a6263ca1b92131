// LaneRun: lanes on their way through a flow graph. It knows at which block each lane waits, how
// deep it is and where it returns to, and which block runs next; an executor keeps the values.
#pragma once

#include <cstdint>

#include <vt/detail/small_vec.hpp>

#include "../services/lane_counters.hpp"
#include "flow_graph.hpp"

namespace vt::detail {

/// Which block runs next.
enum class LaneOrder : std::uint8_t {
  most,      ///< where most work waits, and before it those that are cheaper than waiting for them
  earliest,  ///< the first in the program, as Radul et al. 2019
  last       ///< the last in the program
};
/// How lanes run; results do not depend on it. Tests change it.
struct LaneOptions {
  LaneOrder order = LaneOrder::most;
  std::int64_t places = 0;  ///< lanes that are under way at a time; 0: by their memory
};
LaneOptions& lane_options();
/// What counters tell of its blocks.
std::vector<LaneBlock> counted_blocks(const FlowGraph&);

class LaneRun {
 public:
  LaneRun(const FlowGraph& flow, const Lanes& lanes, LaneCounters& counters)
      : g_(flow), lanes_(lanes), counters_(counters) {}
  virtual ~LaneRun() = default;
  LaneRun(const LaneRun&) = delete;
  LaneRun& operator=(const LaneRun&) = delete;

 protected:
  using Places = Vec<std::int32_t>;

  /// Runs lanes first … last − 1, `count` of them at a time: lanes take the places of those that
  /// have ended. A lane that recurs too deep ends.
  /// Throws: Error(value) of the first such lane, when all others have ended.
  void run_lanes(std::int64_t first, std::int64_t last, std::int64_t count);

  // --- what executors do -------------------------------------------------------------------------

  /// The lane at the place begins.
  virtual void lane_begins(std::int64_t /*place*/) {}
  /// Its results are there.
  virtual void lane_ends(std::int64_t place) = 0;
  /// Reads, computes and writes what the block does. `decisions`: for each place, if it branches.
  virtual void run_block(int block, const Places& places, Vec<std::int32_t>& decisions) = 0;
  /// The block has run: are the results of its call there already? Else `entry` is handed to
  /// returned().
  virtual bool recalls(const FlowGraph::Block&, std::int64_t /*place*/, int& /*entry*/) {
    return false;
  }
  virtual void returned(int /*function*/, std::int64_t /*place*/, int /*entry*/) {}
  /// An operand of the lane call, on the host.
  virtual BufferRef operand(int) const = 0;

  /// How far the frame of the function that the block calls lies behind that of its own.
  std::size_t frame_step(const FlowGraph::Block& b) const {
    return b.exit == FlowGraph::Exit::call && !b.tail ? g_.functions[b.function].frame_bytes : 0;
  }

  const FlowGraph& g_;
  std::int64_t count_ = 0;    ///< places
  Vec<std::int64_t> lane_;    ///< of each place; −1: none
  Vec<std::size_t> frame_;    ///< … where the frame of its function begins, in bytes
  Vec<std::size_t> returns_;  ///< … calls that it has to return from

 private:
  struct Return {
    int block, depth, entry;
  };
  void begin_lane(std::int64_t place);
  void wait(int block, std::int64_t place) {
    waiting_[block].push_back(static_cast<std::int32_t>(place));
  }
  double time_of(int block) const;
  int choose();
  void step(int block);
  void count_lanes(int block, const Places& places);
  void drop_too_deep(const FlowGraph::Block& b, Places& places);
  void leave(const FlowGraph::Block& b, const Places& places);
  [[noreturn]] void tell_failure() const;

  const Lanes& lanes_;
  LaneCounters& counters_;
  std::int64_t next_ = 0, last_ = 0, live_ = 0;
  Vec<Vec<Return>> stacks_;
  Vec<int> depth_;
  Vec<Places> waiting_;  ///< at each block
  Vec<double> waited_;   ///< there, by lanes together, in operations
  Vec<std::int32_t> decisions_;
  Vec<bool> seen_;
  std::int64_t failed_ = -1;
  const FlowGraph::Function* failed_in_ = nullptr;
  CallSite failed_at_;
};

}  // namespace vt::detail
