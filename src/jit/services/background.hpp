// The background thread: work that makes later runs faster and that no caller waits for.
#pragma once

#include <signal.h>

#include <memory>

#include <vt/detail/function.hpp>
#include <vt/error.hpp>

namespace vt::detail {

/// May kernels run unoptimised at first? `VT_TIERS=off` says no; nothing does once the process
/// ends.
bool background_open();
/// Runs `job`, of which nothing is told when it throws, after those given before, on a thread that
/// ends when there are none left. A fork and the end of the process wait until the job that is
/// running rests; at the end it and those that have not begun are dropped. So may be a job that is
/// given what it is `of`, once that has gone.
void in_background(Function<void()> job, std::weak_ptr<const void> of = {});
/// Between two parts of a job, or of another work with the compiler, that may take long. A job
/// waits there while there are pauses; when the process ends it does not return, but throws what no
/// handler of std::exception sees, and others throw ProcessEnds. The caller must hold nothing that
/// others wait for.
void background_rest();
/// While one of these exists no further job begins, and the one that is running goes no further
/// than to its next rest: somebody waits for work of the same kind.
struct BackgroundPause {
  BackgroundPause();
  ~BackgroundPause();
  BackgroundPause(const BackgroundPause&) = delete;
  BackgroundPause& operator=(const BackgroundPause&) = delete;
};

/// What compiling throws when the process ends: the compiler's own objects go then. What is
/// compiled still runs, the rest is for the interpreter.
struct ProcessEnds : Error {
  ProcessEnds();
};
/// A thread's work with the compiler: the end of the process waits until the last of these has
/// gone, and lets none begin.
class CompilerUse {
 public:
  CompilerUse();  ///< Throws: ProcessEnds
  ~CompilerUse();
  static bool on_this_thread();
  /// Has an exception left the library in the middle of its work, since this thread began to use
  /// it? What it was at work on is not to be touched then.
  static bool is_broken_off();
  static void break_off();  ///< says so
  /// Calls `work`, which calls the library: there memory may end.
  static void watch(FunctionRef<void()> work);
  CompilerUse(const CompilerUse&) = delete;
  CompilerUse& operator=(const CompilerUse&) = delete;
};
bool process_ends();

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
