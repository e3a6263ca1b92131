// How the lanes of a lane call run.
#include "lane_choice.hpp"

#include "../../trace/base/environment.hpp"
#include "../../trace/base/stack.hpp"
#include "../../trace/ir/effects.hpp"

namespace vt::detail {

// Effects happen lane by lane, as groups have it.
bool lanes_part(const Equation& e) {
  return lanes_from_environment() != "groups" && !has_effect(e) &&
         e.as<BatchedCallParams>().lanes.count > 0;
}

namespace lane_choice {

bool recurs(const GraphBody& g) {
  need_stack({});
  return any_of(g.equations, [](const Equation& e) {
    return e.op == Op::recursive_call ||
           any_of(bodies_of(e.params), [](const GraphRef& body) { return recurs(*body); });
  });
}

}  // namespace lane_choice

// A recursion in groups is a step of the host for each call.
bool lanes_part_on_device(const Equation& e) {
  const auto& p = e.as<BatchedCallParams>();
  return lanes_part(e) && (p.schedule != LaneSchedule::automatic || lane_choice::recurs(*p.body));
}

}  // namespace vt::detail
