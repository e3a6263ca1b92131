// How the lanes of a lane call run.
#include "lane_choice.hpp"

#include "../../trace/base/environment.hpp"
#include "../../trace/ir/effects.hpp"
#include "../../trace/ir/lane_work.hpp"
#include "../../trace/ir/recursive_function.hpp"
#include "flow_graph.hpp"

namespace vt::detail {

namespace lane_choice {

// Effects happen lane by lane, as groups have it.
bool may_part(const Equation& e) {
  return lanes_from_environment() != "groups" && !has_effect(e) &&
         e.as<BatchedCallParams>().lanes.count > 0;
}

}  // namespace lane_choice

// Queues cost more than groups where there is nothing expensive to wait for, or nobody.
bool lanes_part(const Equation& e) {
  const auto& p = e.as<BatchedCallParams>();
  if (!lane_choice::may_part(e)) return false;
  if (p.schedule == LaneSchedule::hybrid) return true;
  if (p.lanes.count == 1) return false;
  Vec<bool> mapped;
  for (bool m : p.lanes.mapped) mapped.push_back(m);
  return any_of(flow_graph(p.body, mapped).blocks,
                [](const FlowGraph::Block& b) { return b.work >= heavy_work; });
}

// A recursion in groups is a step of the host for each call.
bool lanes_part_on_device(const Equation& e) {
  const auto& p = e.as<BatchedCallParams>();
  return lane_choice::may_part(e) &&
         (p.schedule != LaneSchedule::automatic || calls_recursion(*p.body));
}

}  // namespace vt::detail
