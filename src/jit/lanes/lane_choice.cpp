// How the lanes of a lane call run.
#include "lane_choice.hpp"

#include <algorithm>
#include <utility>

#include "../../trace/base/environment.hpp"
#include "../../trace/ir/collectives.hpp"
#include "../../trace/ir/lane_work.hpp"
#include "../../trace/ir/recursive_function.hpp"
#include "flow_graph.hpp"

namespace vt::detail {

namespace lane_choice {

// Effects happen lane by lane, as groups have it.
bool may_part(const Equation& e) {
  return lanes_from_environment() != "groups" && !keeps_order(e) &&
         e.as<BatchedCallParams>().lanes.count > 0;
}

/// Does each function call itself, or others that lead back, at one place at most, which is in no
/// loop? Then lanes in groups meet at each depth, whatever way they go.
bool is_chain(const FlowGraph& flow) {
  Vec<int> place(flow.functions.size(), -1);
  for (int b = 0; b < static_cast<int>(flow.blocks.size()); ++b) {
    const FlowGraph::Block& block = flow.blocks[b];
    const std::size_t function = block.function;
    if (block.exit != FlowGraph::Exit::call || !flow.functions[function].recursion ||
        !flow.functions[block.callee].recursion)
      continue;
    if (std::exchange(place[function], b) >= 0) return false;
    Vec<bool> seen(flow.blocks.size());
    Vec<int> next = block.targets;
    while (!next.empty()) {
      const int behind = next.back();
      next.pop_back();
      if (behind == b) return false;
      if (std::exchange(seen[behind], true)) continue;
      for (int t : flow.blocks[behind].targets) next.push_back(t);
    }
  }
  return any_of(place, [](int b) { return b >= 0; });
}

/// What a lane takes more in queues than in groups each time it comes to a block, in nanoseconds,
/// if `count` lanes share what a block costs once. perf/results/2026-11-28-lane-choice-cpu.md
/// has the measurements.
double cost_of_queues(const FlowGraph& flow, std::int64_t count) {
  double values = 0, most_work = 0;
  const auto moves = [&](const FlowGraph::Place& p) {
    values += flow.slots[p.slot].storage != FlowGraph::Storage::shared;
  };
  for (const FlowGraph::Block& b : flow.blocks) {
    for (const FlowGraph::Place& p : b.reads) moves(p);
    for (const FlowGraph::Write& w : b.writes) moves(w.to);
    most_work = std::max(most_work, b.work);
  }
  const auto blocks = static_cast<double>(flow.blocks.size());
  values /= blocks;
  const double once = is_chain(flow) ? 100 : 600 + 47 * values;
  return 10 + 1.2 * values - 0.0115 * most_work - once / static_cast<double>(count);
}

/// Is there a recursion, or a loop with something heavy inside? Asked of what is left of a function
/// where it runs: derivatives, say, need no state of an array that a loop only writes.
bool goes_on_for_long(const GraphBody& body, FunctionRef<GraphBody()> as_it_runs) {
  if (calls_recursion(body)) return true;
  const GraphBody simple = as_it_runs();
  LaneWork work;
  return any_of(simple.equations,
                [&](const Equation& e) { return is_control(e.op) && work.is_heavy(simple, e); });
}

}  // namespace lane_choice

// Queues cost more than groups where there is nothing expensive to wait for, or nobody.
bool lanes_part(const Equation& e, FunctionRef<bool()> compiled_in_groups,
                FunctionRef<GraphBody()> as_it_runs) {
  const auto& p = e.as<BatchedCallParams>();
  if (!lane_choice::may_part(e)) return false;
  if (p.schedule == LaneSchedule::hybrid) return true;
  if (p.lanes.count == 1 || !lane_choice::goes_on_for_long(*p.body, as_it_runs)) return false;
  Vec<bool> mapped;
  for (bool m : p.lanes.mapped) mapped.push_back(m);
  const FlowGraph flow = flow_graph(p.body, mapped);
  if (calls_recursion(*p.body) && compiled_in_groups())
    return any_of(flow.blocks, [](const FlowGraph::Block& b) { return b.work >= heavy_work; });
  return lane_choice::cost_of_queues(flow, p.lanes.count) < 0;
}

// A recursion in groups is a step of the host for each call.
bool lanes_part_on_device(const Equation& e) {
  const auto& p = e.as<BatchedCallParams>();
  return lane_choice::may_part(e) &&
         (p.schedule != LaneSchedule::automatic || calls_recursion(*p.body));
}

}  // namespace vt::detail
