// Which equations of a function become lane calls under vmap: those in which lanes go different
// ways, and all between them, so that no lane waits there for another.
#pragma once

#include <optional>
#include <utility>

#include "../../trace/ir/dependence.hpp"
#include "../../trace/ir/graph.hpp"
#include "../../trace/record/thread_state.hpp"

namespace vt::detail {

/// The Graph of one lane with such equations as batched calls, whose lanes the batch rule adds;
/// nothing if there are none. `mapped`: per input. `axis`: of the lanes, if they have a name.
std::optional<GraphBody> outline_lane_calls(const GraphBody&, const Dependence::Flags& mapped,
                                            LaneSchedule, const AxisRef& axis);

/// While it lives, Graphs are walked for a vmap of this schedule.
class LaneScheduleScope {
 public:
  explicit LaneScheduleScope(LaneSchedule schedule)
      : before_(std::exchange(thread_state().schedule, schedule)) {}
  ~LaneScheduleScope() { thread_state().schedule = before_; }
  LaneScheduleScope(const LaneScheduleScope&) = delete;
  LaneScheduleScope& operator=(const LaneScheduleScope&) = delete;

 private:
  LaneSchedule before_;
};

}  // namespace vt::detail
