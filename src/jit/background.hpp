// The background thread: work that makes later runs faster and that nobody waits for.
#pragma once

#include <vt/detail/function.hpp>

namespace vt::detail {

/// May kernels run unoptimised at first? `VT_TIERS=off` says no; nothing does once the process ends.
bool background_open();
/// Runs `job`, which must not throw, after those given before, on a thread that ends when there are none left. A fork waits for the job that
/// is running, the end of the process too; jobs that have not begun by then are dropped.
void in_background(Function<void()> job);
/// While one of these exists no further job begins: somebody waits for work of the same kind.
struct BackgroundPause {
  BackgroundPause();
  ~BackgroundPause();
  BackgroundPause(const BackgroundPause&) = delete;
  BackgroundPause& operator=(const BackgroundPause&) = delete;
};
/// To be called by jobs when they have loaded a library, or used more of one than before: the process then waits for jobs before those objects
/// go, also where it is not the first thread that makes programs.
void background_ends_first();

}  // namespace vt::detail
