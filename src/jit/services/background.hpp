// The background thread: work that makes later runs faster and that no caller waits for.
#pragma once

#include <signal.h>

#include <memory>

#include <vt/detail/function.hpp>

namespace vt::detail {

/// May kernels run unoptimised at first? `VT_TIERS=off` says no; nothing does once the process
/// ends.
bool background_open();
/// Runs `job`, which must not throw, after those given before, on a thread that ends when there are
/// none left. A fork and the end of the process wait until the job that is running rests; at the
/// end it and those that have not begun are dropped. So may be a job that is given what it is `of`,
/// once that has gone.
void in_background(Function<void()> job, std::weak_ptr<const void> of = {});
/// Would a job that is given now run there, rather than at once on this thread because nobody would
/// know when the process ends?
bool background_takes_jobs();
/// Between two parts of a job that may take long; does nothing on other threads. Waits there while
/// there are pauses; does not return (throws what no handler of std::exception sees) when the
/// process ends. The caller must hold nothing that others wait for.
void background_rest();
/// While one of these exists no further job begins, and the one that is running goes no further
/// than to its next rest: somebody waits for work of the same kind.
struct BackgroundPause {
  BackgroundPause();
  ~BackgroundPause();
  BackgroundPause(const BackgroundPause&) = delete;
  BackgroundPause& operator=(const BackgroundPause&) = delete;
};
/// To be called by jobs when they have loaded a library, or used more of one than before: the
/// process then waits for jobs before those objects go, also where it is not the first thread that
/// makes programs.
void background_ends_first();

/// Threads made while one of these exists leave signals to the program's own threads: no handler of
/// the user's runs on them.
class SignalsBlocked {
 public:
  SignalsBlocked();
  ~SignalsBlocked();
  SignalsBlocked(const SignalsBlocked&) = delete;
  SignalsBlocked& operator=(const SignalsBlocked&) = delete;

 private:
  sigset_t before_;
};

}  // namespace vt::detail
