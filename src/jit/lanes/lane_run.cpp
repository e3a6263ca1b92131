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
    info.function = flow.functions[static_cast<std::size_t>(b.function)].name;
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
  lane_.assign(at(count), -1);
  frame_.assign(at(count), 0);
  returns_.assign(at(count), 0);
  depth_.assign(at(count), 0);
  stacks_.resize(at(count));
  waiting_.resize(g_.blocks.size());
  waited_.assign(g_.blocks.size(), 0);
  for (std::int64_t p = 0; p < count; ++p) begin_lane(p);
  for (int b = choose(); b >= 0; b = choose()) step(b);
  if (failed_ >= 0) tell_failure();
}

void LaneRun::begin_lane(std::int64_t place) {
  if (next_ == last_) {
    lane_[at(place)] = -1;
    return;
  }
  lane_[at(place)] = next_++;
  frame_[at(place)] = returns_[at(place)] = 0;
  depth_[at(place)] = 0;
  stacks_[at(place)].clear();
  ++live_;
  lane_begins(place);
  wait(g_.functions[0].entry, place);
}

/// About how long the block would run for the lanes that wait there.
double LaneRun::time_of(int block) const {
  return lane_times::work_to_begin +
         g_.blocks[at(block)].work *
             std::max(static_cast<double>(waiting_[at(block)].size()), lane_times::rows_of_one);
}

// The block with most work waiting, and before it those that are cheap beside it, and those whose
// lanes have waited so long that others could have used their places for what these take.
int LaneRun::choose() {
  int best = -1, first = -1, last = -1, meeting = -1;
  double most = -1;
  for (int b = 0; b < static_cast<int>(waiting_.size()); ++b) {
    const std::size_t count = waiting_[at(b)].size();
    if (count == 0) continue;
    if (g_.blocks[at(b)].meeting) {
      if (meeting < 0 || count > waiting_[at(meeting)].size()) meeting = b;
      continue;
    }
    if (first < 0) first = b;
    last = b;
    const double work = (g_.blocks[at(b)].work + 1) * static_cast<double>(count);
    if (work > most) best = b, most = work;
  }
  if (first < 0) return meeting;
  const LaneOrder order = lane_options().order;
  if (order != LaneOrder::most) return order == LaneOrder::earliest ? first : last;
  const double turn = time_of(best) / static_cast<double>(live_),
               cheap = std::max(g_.blocks[at(best)].work / lane_times::cheaper,
                                g_.blocks[at(best)].work >= heavy_work ? heavy_work : 0);
  int next = best;
  for (int b = first; b <= last; ++b) {
    if (b == best || waiting_[at(b)].empty() || g_.blocks[at(b)].meeting) continue;
    waited_[at(b)] += turn * static_cast<double>(waiting_[at(b)].size());
    const double time = time_of(b);
    if ((g_.blocks[at(b)].work < cheap || time * lane_times::cheaper < time_of(best) ||
         waited_[at(b)] >= time) &&
        (next == best || time < time_of(next)))
      next = b;
  }
  waited_[at(next)] = 0;
  return next;
}

void LaneRun::step(int number) {
  const FlowGraph::Block& b = g_.blocks[at(number)];
  Places places;
  std::swap(places, waiting_[at(number)]);
  std::sort(places.begin(), places.end());
  count_lanes(number, places);
  if (b.exit == FlowGraph::Exit::call) drop_too_deep(b, places);
  if (places.empty()) return;
  decisions_.clear();
  run_block(number, places, decisions_);
  leave(b, places);
}

void LaneRun::count_lanes(int number, const Places& places) {
  int least = depth_[at(places[0])], most = least;
  for (std::int32_t p : places) {
    least = std::min(least, depth_[at(p)]);
    most = std::max(most, depth_[at(p)]);
  }
  std::uint64_t depths = 1;
  if (most > least) {
    seen_.assign(at(most - least + 1), false);
    for (std::int32_t p : places) seen_[at(depth_[at(p)] - least)] = true;
    depths = static_cast<std::uint64_t>(std::count(seen_.begin(), seen_.end(), true));
  }
  counters_.count(at(number), places.size(), at(count_), depths);
}

// Those for which the call is one too many.
void LaneRun::drop_too_deep(const FlowGraph::Block& b, Places& places) {
  const FlowGraph::Function& callee = g_.functions[at(b.callee)];
  if (!callee.recursion) return;
  std::size_t kept = 0;
  for (std::int32_t p : places) {
    if (depth_[at(p)] < callee.recursion->max_depth) {
      places[kept++] = p;
      continue;
    }
    if (failed_ < 0 || lane_[at(p)] < failed_) {
      failed_ = lane_[at(p)];
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
        wait(b.targets[at(std::clamp<std::int32_t>(decisions_[k], 0, last))], places[k]);
      return;
    }
    case FlowGraph::Exit::call: {
      const FlowGraph::Function& callee = g_.functions[at(b.callee)];
      for (std::int32_t p : places) {
        if (!b.tail) {
          int entry = -1;
          if (recalls(b, p, entry)) {
            wait(b.targets[0], p);
            continue;
          }
          stacks_[at(p)].push_back({b.targets[0], depth_[at(p)], entry});
          ++returns_[at(p)];
        }
        depth_[at(p)] += callee.recursion ? 1 : 0;
        frame_[at(p)] += frame_step(b);
        wait(callee.entry, p);
      }
      if (frame_step(b)) counters_.count_pushes(places.size());
      return;
    }
    case FlowGraph::Exit::leave:
      for (std::int32_t p : places) {
        if (stacks_[at(p)].empty()) {
          lane_ends(p);
          --live_;
          begin_lane(p);
          continue;
        }
        const Return back = stacks_[at(p)].back();
        stacks_[at(p)].pop_back();
        --returns_[at(p)];
        returned(b.function, p, back.entry);
        depth_[at(p)] = back.depth;
        frame_[at(p)] -= g_.functions[at(g_.blocks[at(back.block)].function)].frame_bytes;
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
    return operands[i]->as<const std::byte>() + at(failed_) * arguments[i].bytes();
  });
  fail_too_deep(failed_in_->recursion->users->name, failed_in_->recursion->max_depth, lane,
                failed_at_);
}

}  // namespace vt::detail
