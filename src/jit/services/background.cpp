// The background thread: a queue and one thread, which ends when the queue is empty, and before a
// fork or the end of the process.
#include "background.hpp"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <new>

#include <vt/execution.hpp>
#include <vt/small_vec.hpp>

#include "../../trace/base/environment.hpp"
#include "../../trace/base/warnings.hpp"

namespace vt::detail {

namespace background_jobs {

struct Job {
  Function<void()> run;
  std::weak_ptr<const void> of;
  bool owned = false;  // by what it is `of`
};

constexpr std::size_t least_to_sweep = 1024;

struct State {
  std::mutex lock;
  std::condition_variable idle;
  Vec<Job> jobs;
  std::size_t next = 0;
  std::size_t sweep_at = least_to_sweep;  // as many jobs, done or not
  Job current;
  bool busy = false;    // with `current`
  bool parked = false;  // between two parts of it
  int pauses = 0;
  pthread_t thread{};
  bool made = false;     // `thread` is to be joined
  bool running = false;  // it will look for jobs again
  bool watched = false;  // by the first thread, see EndOfFirstThread
  bool begun = false;    // there has been a job
  bool ended = false;
};
State& state() {
  static State* const s = new State;  // never destroyed: kernels may be made while the process ends
  return *s;
}

thread_local bool here = false;  // on the background thread

// Leaves a job that nobody will see the end of.
struct Dropped {};

void* serve(void*) {
  State& s = state();
  here = true;
#if defined(__linux__)
  // There this is the thread's own: the program's threads have the processors first.
  setpriority(PRIO_PROCESS, 0, 10);
#endif
  for (;;) {
    {
      const std::lock_guard hold(s.lock);
      s.current = {};
      s.busy = false;
      if (s.pauses > 0 || s.next == s.jobs.size()) {
        if (s.next == s.jobs.size()) s.jobs.clear(), s.next = 0;
        s.running = false;
        s.idle.notify_all();
        return nullptr;
      }
      s.current = std::move(s.jobs[s.next++]);
      s.busy = true;
    }
    try {
      s.current.run();
    } catch (const Dropped&) {
    }
  }
}

// With `lock` held, once it does not run any more: it is leaving, and needs no lock for that.
void join(State& s) {
  if (std::exchange(s.made, false)) pthread_join(s.thread, nullptr);
}

// With `lock` held.
void start(State& s) {
  if (s.running || s.ended || s.pauses > 0 || s.next == s.jobs.size()) return;
  join(s);
  const SignalsBlocked quiet;
  s.made = s.running = pthread_create(&s.thread, nullptr, serve, nullptr) == 0;
  if (s.made) return;
  s.next = s.jobs.size();  // no thread to be had: what runs goes on as it is
  warn_once("kernels stay unoptimised: no thread can be started for them");
}

// With `lock` held: forgets what has been done, and what is there for nobody.
void sweep(State& s) {
  if (s.jobs.size() < s.sweep_at) return;
  Vec<Job> left;
  for (std::size_t i = s.next; i < s.jobs.size(); ++i)
    if (!s.jobs[i].owned || !s.jobs[i].of.expired()) left.push_back(std::move(s.jobs[i]));
  s.jobs = std::move(left);
  s.next = 0;
  s.sweep_at = std::max(least_to_sweep, 2 * s.jobs.size());
}

void end() {
  State& s = state();
  std::unique_lock hold(s.lock);
  s.ended = true;
  s.next = s.jobs.size();
  s.idle.notify_all();
  while (s.running) s.idle.wait(hold);
  join(s);  // what its thread-local objects do as it leaves must be over too
}

// LLVM makes objects when it first needs them, whose destructors run before those handlers of exit
// that were there already, while a job may still need them. What the first thread keeps for itself
// goes before all handlers.
bool first_thread() {
#if defined(__linux__)
  return ::syscall(SYS_gettid) == ::getpid();
#else
  return false;
#endif
}
struct EndOfFirstThread {
  ~EndOfFirstThread() {
    if (first_thread()) end();
  }
};
bool watch_exit() {
  static thread_local EndOfFirstThread watch;
  static_cast<void>(watch);
  return first_thread();
}

// The thread is between two parts of a job, or gone, whenever a process forks: a child has its
// memory, but not the thread, and would wait forever for what that held.
void leave() {
  State& s = state();
  std::unique_lock hold(s.lock);
  ++s.pauses;
  while (s.running && !s.parked) s.idle.wait(hold);
  if (!s.running) join(s);
  hold.release();  // until come_back
}
void come_back() {
  State& s = state();
  --s.pauses;
  start(s);
  s.idle.notify_all();
  s.lock.unlock();
}
// The child has none of the other threads, which may have been compiling or waiting here. It begins
// with what is left of the jobs, and anew with the one that was parked, when it gives one itself,
// or waits for them.
void come_back_later() {
  State& s = state();
  if (s.busy)
    s.jobs.insert(s.jobs.begin() + static_cast<std::ptrdiff_t>(s.next), std::move(s.current));
  s.made = s.running = s.busy = s.parked = false;
  s.pauses = 0;
  new (&s.idle) std::condition_variable;
  s.lock.unlock();
}

}  // namespace background_jobs

bool background_open() {
  static const bool on = tiers_from_environment().empty();
  if (!on) return false;
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  return !s.ended;
}

void in_background(Function<void()> job, std::weak_ptr<const void> of) {
  using namespace background_jobs;
  static const int prepared = std::atexit(end) + pthread_atfork(leave, come_back, come_back_later);
  static_cast<void>(prepared);
  const bool first = watch_exit();
  State& s = state();
  std::unique_lock hold(s.lock);
  if (s.ended) return;
  if (s.watched |= first; !std::exchange(s.begun, true) && !s.watched) {
    // The first thread has not come by, so the end is known from the handlers alone: what LLVM
    // makes when it first optimises must be there before another thread does.
    hold.unlock();
    return job();
  }
  sweep(s);
  const bool owned = !of.expired();
  s.jobs.push_back({std::move(job), std::move(of), owned});
  start(s);
}

bool background_takes_jobs() {
  const bool first = background_jobs::watch_exit();
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  s.watched |= first;
  return (s.begun || s.watched) && !s.ended;
}

BackgroundPause::BackgroundPause() {
  const bool first = background_jobs::watch_exit();
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  s.watched |= first;
  ++s.pauses;
}
BackgroundPause::~BackgroundPause() {
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  --s.pauses;
  start(s);
  s.idle.notify_all();
}

void background_ends_first() { std::atexit(background_jobs::end); }

void background_rest() {
  using namespace background_jobs;
  if (!here) return;
  State& s = state();
  std::unique_lock hold(s.lock);
  while (s.pauses > 0 && !s.ended) {
    s.parked = true;
    s.idle.notify_all();
    s.idle.wait(hold);
  }
  s.parked = false;
  if (s.ended) throw Dropped();
}

SignalsBlocked::SignalsBlocked() {
  sigset_t all;
  sigfillset(&all);
  // of the thread's own doing
  for (int own : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS}) sigdelset(&all, own);
  pthread_sigmask(SIG_SETMASK, &all, &before_);
}
SignalsBlocked::~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

}  // namespace vt::detail

namespace vt {

void wait_compiled() {
  detail::background_jobs::State& s = detail::background_jobs::state();
  std::unique_lock hold(s.lock);
  detail::background_jobs::start(s);
  while (s.running || (s.next < s.jobs.size() && !s.ended)) s.idle.wait(hold);
  detail::background_jobs::join(s);
}

}  // namespace vt
