// InstanceState: the part of this thread's recording that belongs to one of several functions that
// take turns.
#pragma once

#include <cstddef>
#include <utility>

#include "../../trace/record/thread_state.hpp"

namespace vt::detail {

class InstanceState {
 public:
  /// It begins with what is so now; scopes that are open now stay open for all.
  InstanceState() : below_(thread_state().scopes.size()), running_(thread_state()) {}

  void enter() {
    ThreadState& state = thread_state();
    std::swap(static_cast<RunningState&>(state), running_);
    for (ScopeState& s : scopes_) state.scopes.push_back(std::move(s));
    scopes_.clear();
  }
  void leave() {
    ThreadState& state = thread_state();
    for (std::size_t k = below_; k < state.scopes.size(); ++k)
      scopes_.push_back(std::move(state.scopes[k]));
    while (state.scopes.size() > below_) state.scopes.pop_back();
    std::swap(static_cast<RunningState&>(state), running_);
  }

 private:
  std::size_t below_;
  RunningState running_;
  Vec<ScopeState> scopes_;
};

}  // namespace vt::detail
