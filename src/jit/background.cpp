// One thread with a queue, which comes and goes: none is left over when there is nothing to do, when a process forks or when it ends.
#include "background.hpp"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string_view>

#include <vt/execution.hpp>
#include <vt/small_vec.hpp>

#include "../trace/warnings.hpp"

namespace vt::detail {

namespace background_jobs {

struct State {
  std::mutex lock;
  std::condition_variable idle;
  Vec<Function<void()>> jobs;
  std::size_t next = 0;
  int pauses = 0;
  pthread_t thread{};
  bool made = false;     // `thread` is to be joined
  bool running = false;  // it will look for jobs again
  bool ended = false;
};
State& state() {
  static State* const s = new State;  // never destroyed: kernels may be made while the process ends
  return *s;
}

void* serve(void*) {
  State& s = state();
#if defined(__linux__)
  // There this is the thread's own: the program's threads have the processors first.
  setpriority(PRIO_PROCESS, 0, 10);
#endif
  for (;;) {
    Function<void()> job;
    {
      const std::lock_guard hold(s.lock);
      if (s.pauses > 0 || s.next == s.jobs.size()) {
        if (s.next == s.jobs.size()) s.jobs.clear(), s.next = 0;
        s.running = false;
        s.idle.notify_all();
        return nullptr;
      }
      job = std::move(s.jobs[s.next++]);
    }
    job();
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
  s.made = s.running = pthread_create(&s.thread, nullptr, serve, nullptr) == 0;
  if (!s.made) s.next = s.jobs.size();  // no thread to be had: what runs goes on as it is
}

void end() {
  State& s = state();
  std::unique_lock hold(s.lock);
  s.ended = true;
  s.next = s.jobs.size();
  while (s.running) s.idle.wait(hold);
  join(s);  // what its thread-local objects do as it leaves must be over too
}

// LLVM makes objects when it first needs them, whose destructors run before those handlers of exit that were there already, while a job may
// still need them. What the first thread keeps for itself goes before all handlers.
struct EndOfFirstThread {
  ~EndOfFirstThread() {
#if defined(__linux__)
    if (::syscall(SYS_gettid) == ::getpid()) end();
#endif
  }
};
void watch_exit() {
  static thread_local EndOfFirstThread watch;
  static_cast<void>(watch);
}

// The thread is gone whenever a process forks: a child would have its memory, but not the thread.
void leave() {
  State& s = state();
  std::unique_lock hold(s.lock);
  ++s.pauses;
  while (s.running) s.idle.wait(hold);
  join(s);
  hold.release();  // until come_back
}
void come_back() {
  State& s = state();
  --s.pauses;
  start(s);
  s.lock.unlock();
}
// The child has none of the other threads, which may have been compiling. It begins with what is left of the jobs when it gives one itself, or
// waits for them.
void come_back_later() {
  state().pauses = 0;
  state().lock.unlock();
}

}  // namespace background_jobs

bool background_open() {
  static const bool on = [] {
    const char* text = std::getenv("VT_TIERS");
    if (text && *text && std::string_view(text) != "off") warn_once(std::string("VT_TIERS=") + text + " is not off: ignored");
    return !text || std::string_view(text) != "off";
  }();
  if (!on) return false;
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  return !s.ended;
}

void in_background(Function<void()> job) {
  using namespace background_jobs;
  static const int prepared = std::atexit(end) + pthread_atfork(leave, come_back, come_back_later);
  static_cast<void>(prepared);
  watch_exit();
  State& s = state();
  const std::lock_guard hold(s.lock);
  if (s.ended) return;
  s.jobs.push_back(std::move(job));
  start(s);
}

BackgroundPause::BackgroundPause() {
  background_jobs::watch_exit();
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  ++s.pauses;
}
BackgroundPause::~BackgroundPause() {
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  --s.pauses;
  start(s);
  s.idle.notify_all();
}

void background_ends_first() {
  static std::atomic<int> times = 0;
  if (times.fetch_add(1) < 16) std::atexit(background_jobs::end);
}

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
