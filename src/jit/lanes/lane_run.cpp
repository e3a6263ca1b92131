// LaneRun: queues of lanes in front of blocks.
#include "lane_run.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "../../trace/ir/lane_work.hpp"
#include "../../trace/ir/printer.hpp"
#include "../../trace/ir/recursive_function.hpp"

namespace vt::detail {

namespace lane_times {

/// What running a block takes beside its work, in operations, and rows that take as long as one.
constexpr double work_to_begin = 20000, rows_of_one = 4;
/// Blocks of so much less work than the one where most waits, of a lane or of all that wait, never
/// wait for it: their lanes may get there before it runs.
constexpr double cheaper = 16;

}  // namespace lane_times

LaneOptions& lane_options() {
  static LaneOptions options;
  return options;
}

std::vector<LaneBlock> counted_blocks(const FlowGraph& flow) {
  std::vector<LaneBlock> blocks;
  for (const FlowGraph::Block& b : flow.blocks) {
    LaneBlock info;
    info.function = flow.functions[b.function].name;
    info.operations = flow.operations_of(b);
    info.where = b.where;
    info.heavy = b.work >= heavy_work;
    info.operations_of_lane = b.work;
    blocks.push_back(std::move(info));
  }
  return blocks;
}

void LaneRun::run_lanes(std::int64_t first, std::int64_t last, std::int64_t count) {
  next_ = first;
  last_ = last;
  count_ = count;
  lane_.assign(count, -1);
  frame_.assign(count, 0);
  returns_.assign(count, 0);
  depth_.assign(count, 0);
  stacks_.resize(count);
  waiting_.resize(g_.blocks.size());
  waited_.assign(g_.blocks.size(), 0);
  for (std::int64_t p = 0; p < count; ++p) begin_lane(p);
  for (int b = choose(); b >= 0; b = choose()) step(b);
  if (failed_ >= 0) tell_failure();
}

void LaneRun::begin_lane(std::int64_t place) {
  if (next_ == last_) {
    lane_[place] = -1;
    return;
  }
  lane_[place] = next_++;
  frame_[place] = returns_[place] = 0;
  depth_[place] = 0;
  stacks_[place].clear();
  ++live_;
  lane_begins(place);
  wait(g_.functions[0].entry, place);
}

/// About how long the block would run for the lanes that wait there.
double LaneRun::time_of(int block) const {
  return lane_times::work_to_begin +
         g_.blocks[block].work *
             std::max(static_cast<double>(waiting_[block].size()), lane_times::rows_of_one);
}

// The block with most work waiting, and before it those that are cheap beside it, and those whose
// lanes have waited so long that others could have used their places for what these take.
int LaneRun::choose() {
  int best = -1, first = -1, last = -1, meeting = -1;
  double most = -1;
  for (int b = 0; b < static_cast<int>(waiting_.size()); ++b) {
    const std::size_t count = waiting_[b].size();
    if (count == 0) continue;
    if (g_.blocks[b].meeting) {
      if (meeting < 0 || count > waiting_[meeting].size()) meeting = b;
      continue;
    }
    if (first < 0) first = b;
    last = b;
    const double work = (g_.blocks[b].work + 1) * static_cast<double>(count);
    if (work > most) best = b, most = work;
  }
  if (first < 0) return meeting;
  const LaneOrder order = lane_options().order;
  if (order != LaneOrder::most) return order == LaneOrder::earliest ? first : last;
  const double turn = time_of(best) / static_cast<double>(live_),
               cheap = std::max(g_.blocks[best].work / lane_times::cheaper,
                                g_.blocks[best].work >= heavy_work ? heavy_work : 0);
  int next = best;
  for (int b = first; b <= last; ++b) {
    if (b == best || waiting_[b].empty() || g_.blocks[b].meeting) continue;
    waited_[b] += turn * static_cast<double>(waiting_[b].size());
    const double time = time_of(b);
    if ((g_.blocks[b].work < cheap || time * lane_times::cheaper < time_of(best) ||
         waited_[b] >= time) &&
        (next == best || time < time_of(next)))
      next = b;
  }
  waited_[next] = 0;
  return next;
}

void LaneRun::step(int number) {
  const FlowGraph::Block& b = g_.blocks[number];
  Places places;
  std::swap(places, waiting_[number]);
  std::sort(places.begin(), places.end());
  count_lanes(number, places);
  if (b.exit == FlowGraph::Exit::call) drop_too_deep(b, places);
  if (places.empty()) return;
  decisions_.clear();
  run_block(number, places, decisions_);
  leave(b, places);
}

void LaneRun::count_lanes(int number, const Places& places) {
  int least = depth_[places[0]], most = least;
  for (std::int32_t p : places) {
    least = std::min(least, depth_[p]);
    most = std::max(most, depth_[p]);
  }
  std::uint64_t depths = 1;
  if (most > least) {
    seen_.assign(most - least + 1, false);
    for (std::int32_t p : places) seen_[depth_[p] - least] = true;
    depths = static_cast<std::uint64_t>(std::count(seen_.begin(), seen_.end(), true));
  }
  counters_.count(number, places.size(), count_, depths);
}

// Those for which the call is one too many.
void LaneRun::drop_too_deep(const FlowGraph::Block& b, Places& places) {
  const FlowGraph::Function& callee = g_.functions[b.callee];
  if (!callee.recursion) return;
  std::size_t kept = 0;
  for (std::int32_t p : places) {
    if (depth_[p] < callee.recursion->max_depth) {
      places[kept++] = p;
      continue;
    }
    if (failed_ < 0 || lane_[p] < failed_) {
      failed_ = lane_[p];
      failed_in_ = &callee;
      failed_at_ = b.called_at;
    }
    --live_;
    begin_lane(p);
  }
  places.resize(kept);
}

void LaneRun::leave(const FlowGraph::Block& b, const Places& places) {
  switch (b.exit) {
    case FlowGraph::Exit::jump:
      for (std::int32_t p : places) wait(b.targets[0], p);
      return;
    case FlowGraph::Exit::branch: {
      const auto last = static_cast<std::int32_t>(b.targets.size()) - 1;
      for (std::size_t k = 0; k < places.size(); ++k)
        wait(b.targets[std::clamp<std::int32_t>(decisions_[k], 0, last)], places[k]);
      return;
    }
    case FlowGraph::Exit::call: {
      const FlowGraph::Function& callee = g_.functions[b.callee];
      for (std::int32_t p : places) {
        if (!b.tail) {
          int entry = -1;
          if (recalls(b, p, entry)) {
            wait(b.targets[0], p);
            continue;
          }
          stacks_[p].push_back({b.targets[0], depth_[p], entry});
          ++returns_[p];
        }
        depth_[p] += callee.recursion ? 1 : 0;
        frame_[p] += frame_step(b);
        wait(callee.entry, p);
      }
      if (frame_step(b)) counters_.count_pushes(places.size());
      return;
    }
    case FlowGraph::Exit::leave:
      for (std::int32_t p : places) {
        if (stacks_[p].empty()) {
          lane_ends(p);
          --live_;
          begin_lane(p);
          continue;
        }
        const Return back = stacks_[p].back();
        stacks_[p].pop_back();
        --returns_[p];
        returned(b.function, p, back.entry);
        depth_[p] = back.depth;
        frame_[p] -= g_.functions[g_.blocks[back.block].function].frame_bytes;
        wait(back.block, p);
      }
      return;
  }
}

void LaneRun::tell_failure() const {
  Vec<Aval> arguments;
  Vec<BufferRef> operands;
  for (const FlowGraph::Slot& s : g_.slots)
    if (s.storage == FlowGraph::Storage::argument) {
      arguments.push_back(s.aval);
      operands.push_back(operand(s.operand));
    }
  const std::string lane = printer::lane_text(lanes_, failed_, arguments, [&](std::size_t i) {
    return operands[i]->as<const std::byte>() + failed_ * arguments[i].bytes();
  });
  fail_too_deep(failed_in_->recursion->users->name, failed_in_->recursion->max_depth, lane,
                failed_at_);
}

}  // namespace vt::detail
