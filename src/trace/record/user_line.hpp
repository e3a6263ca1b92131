// The user's line that ops in passes and composed functions get.
#pragma once

#include "thread_state.hpp"

namespace vt::detail {

/// The line to blame: that of the pass or the composed function at work if there is one, else
/// `where`.
inline CallSite user_line(CallSite where) {
  const CallSite& outer = thread_state().where;
  return outer.file ? outer : where;
}

/// While it lives, ops are attributed to the line that called a composed function (unless a pass
/// has set one already).
class UserLine {
 public:
  explicit UserLine(CallSite where) : state_(thread_state()), before_(state_.where) {
    if (!before_.file) state_.where = where;
  }
  ~UserLine() { state_.where = before_; }
  UserLine(const UserLine&) = delete;
  UserLine& operator=(const UserLine&) = delete;

 private:
  ThreadState& state_;
  CallSite before_;
};

}  // namespace vt::detail
