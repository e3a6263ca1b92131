// Times of a program's steps, measured while explain asks for them.
#pragma once

#include <chrono>
#include <cstdint>

namespace vt::detail {

/// The run of a whole program whose steps this thread measures; 0: none.
inline std::uint64_t& measured_run() {
  constinit static thread_local std::uint64_t run = 0;
  return run;
}

/// Of one step, in the run that was last measured and in the fastest one. Written by the one thread
/// that measures.
struct StepTime {
  double best = 0, now = 0;
  std::uint64_t run = 0, count = 0;
  double seconds() const { return best > 0 && best < now ? best : now; }
};

/// Measures a step from construction to destruction, where `run` is one.
class StepClock {
 public:
  StepClock(std::uint64_t run, StepTime& time) : time_(run ? &time : nullptr) {
    if (!time_) return;
    if (time_->run != run) *time_ = {time_->seconds(), 0, run, 0};
    since_ = std::chrono::steady_clock::now();
  }
  ~StepClock() {
    if (!time_) return;
    time_->now += std::chrono::duration<double>(std::chrono::steady_clock::now() - since_).count();
    ++time_->count;
  }
  StepClock(const StepClock&) = delete;
  StepClock& operator=(const StepClock&) = delete;

 private:
  StepTime* time_;
  std::chrono::steady_clock::time_point since_;
};

}  // namespace vt::detail
