// LaneScope: the lane that this thread is in while the lanes of an equation run one by one.
#pragma once

#include "../ir/effects.hpp"
#include "thread_state.hpp"

namespace vt::detail {

/// While it lives, what happens on this thread happens in one lane of an equation whose lanes go
/// different ways.
class LaneScope {
 public:
  LaneScope(const Lanes& lanes, std::int64_t lane) : before_(thread_state().lane.size()) {
    if (lanes.extents.empty()) thread_state().lane.push_back(lane);
    else append_index(thread_state().lane, {lanes.extents.data(), lanes.extents.size()}, lane);
  }
  ~LaneScope() { thread_state().lane.resize(before_); }
  LaneScope(const LaneScope&) = delete;
  LaneScope& operator=(const LaneScope&) = delete;

 private:
  std::size_t before_;
};

}  // namespace vt::detail
