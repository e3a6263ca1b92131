// The background thread: a queue and one thread, which ends when the queue is empty, and before a
// fork or the end of the process. Who waits for the jobs takes some of them. And who is at work
// with the compiler, which must be over when the process ends.
#include "background.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <new>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/execution.hpp>

#include "../../trace/base/environment.hpp"
#include "../../trace/base/locks.hpp"
#include "../../trace/base/warnings.hpp"

namespace vt::detail {

namespace background_jobs {

struct Job {
  Job(Function<void()> r, std::weak_ptr<const void> o, bool is_owned)
      : run(std::move(r)), of(std::move(o)), owned(is_owned) {}
  Function<void()> run;
  std::weak_ptr<const void> of;
  bool owned;  // by what it is `of`
};
using JobRef = std::shared_ptr<Job>;

constexpr std::size_t least_to_sweep = 1024;

struct State {
  Mutex lock;
  std::condition_variable_any idle;
  Vec<JobRef> jobs;  // none, or some from `next` on
  std::size_t next = 0;
  std::size_t sweep_at = least_to_sweep;  // as many jobs, done or not
  // Of the thread, and of those who wait; a few of them take no memory, which may have ended.
  SmallVec<JobRef, 8> current;
  std::size_t resting = 0;  // of these, between two of their parts
  bool parked = false;      // among them the thread's own
  int pauses = 0;
  double seconds = 0;  // of a processor, since there were no jobs
  pthread_t thread{};
  bool made = false;     // `thread` is to be joined
  bool running = false;  // it will look for jobs again
  int uses = 0;          // of the compiler
  unsigned past_uses = 0;
  std::atomic<bool> ended = false;  // asked for without `lock` as well
  bool for_good = false;            // the process has ended, not only its first thread

  void drop() {
    jobs.clear();
    next = 0;
  }
};
State& state() {
  static State* const s = new State;  // never destroyed: kernels may be made while the process ends
  return *s;
}

thread_local bool here = false;    // on the background thread
thread_local bool in_job = false;  // there, or on a thread that waits
thread_local int own_uses = 0;
thread_local bool broken_off = false;

// Leaves a job that nobody will see the end of.
struct Dropped {};

double seconds_of_thread() {
  timespec t = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

using Hold = std::unique_lock<Mutex>;

// With `lock` held, which is free while the next job runs on this thread.
void run_next(State& s, Hold& hold) {
  const JobRef job = std::move(s.jobs[s.next++]);
  if (s.next == s.jobs.size()) s.jobs.clear(), s.next = 0;
  s.current.push_back(job);
  hold.unlock();
  const double begin = seconds_of_thread();
  in_job = true;
  try {
    job->run();
  } catch (...) {  // Dropped; or no memory is left to tell of what is wrong
  }
  in_job = false;
  job->run = {};
  const double taken = seconds_of_thread() - begin;
  hold.lock();
  s.current.erase(std::find(s.current.begin(), s.current.end(), job));
  s.seconds += taken;
  if (s.jobs.empty() && s.current.empty()) {
    if (s.seconds > 3 && !s.ended)
      warn_once(formatted(
          "optimising kernels in the background kept a processor busy for {:.0f} s; until "
          "then they ran unoptimised (VT_TRACE shows which they are, vt::wait_compiled "
          "waits for them)",
          s.seconds));
    s.seconds = 0;
  }
  s.idle.notify_all();
}

void* serve(void*) {
  State& s = state();
  here = true;
#if defined(__linux__)
  // There this is the thread's own: the program's threads have the processors first.
  setpriority(PRIO_PROCESS, 0, 10);
#endif
  Hold hold(s.lock);
  while (s.pauses == 0 && !s.jobs.empty()) run_next(s, hold);
  s.running = false;
  s.idle.notify_all();
  return nullptr;
}

// With `lock` held, once it does not run any more; it is free meanwhile, for the thread's own
// objects to go.
void join(State& s, Hold& hold) {
  if (!std::exchange(s.made, false)) return;
  const pthread_t thread = s.thread;
  hold.unlock();
  pthread_join(thread, nullptr);
  hold.lock();
}

// With `lock` held.
void start(State& s, Hold& hold) {
  const auto is_to_run = [&] { return !s.running && !s.ended && s.pauses == 0 && !s.jobs.empty(); };
  if (is_to_run()) join(s, hold);
  if (!is_to_run()) return;
  const SignalsBlocked quiet;
  s.made = s.running = pthread_create(&s.thread, nullptr, serve, nullptr) == 0;
  if (s.made) return;
  s.drop();  // no thread to be had: what runs goes on as it is
  warn_once("kernels stay unoptimised: no thread can be started for them");
}

// With `lock` held: forgets what has been done, and what is there for nobody.
void sweep(State& s) {
  if (s.jobs.size() < s.sweep_at) return;
  Vec<JobRef> left;
  for (std::size_t i = s.next; i < s.jobs.size(); ++i)
    if (!s.jobs[i]->owned || !s.jobs[i]->of.expired()) left.push_back(std::move(s.jobs[i]));
  s.jobs = std::move(left);
  s.next = 0;
  s.sweep_at = std::max(least_to_sweep, 2 * s.jobs.size());
}

void end(bool for_good) {
  State& s = state();
  Hold hold(s.lock);
  s.ended = true;
  s.for_good = s.for_good || for_good;
  s.drop();
  s.idle.notify_all();
  const std::size_t own_job = in_job;
  while ((s.running && !here) || s.current.size() > own_job || s.uses > own_uses) s.idle.wait(hold);
  if (!here) join(s, hold);  // what its thread-local objects do as it leaves must be over too
}
void end_of_process() { end(true); }

bool first_thread() {
#if defined(__linux__)
  return ::syscall(SYS_gettid) == ::getpid();
#else
  return false;
#endif
}
// It may end before the process does, by pthread_exit.
bool first_thread_is_gone() {
  char text[512] = {};
  const int file = ::open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const bool read = ::read(file, text, sizeof text - 1) > 0;
  ::close(file);
  const char* const name_end = read ? std::strrchr(text, ')') : nullptr;
  return name_end && name_end[1] == ' ' && name_end[2] == 'Z';
}
// With `lock` held.
bool has_ended(State& s) {
  if (s.ended && !s.for_good && first_thread_is_gone()) s.ended = false;
  return s.ended;
}

// LLVM makes objects when it is loaded and when it first needs them, whose destructors run before
// those handlers of exit that were there already. What the first thread keeps for itself goes
// before all handlers. So it is told when the process begins, or loads vt, that it shall tell of
// its end.
struct EndOfFirstThread {
  ~EndOfFirstThread() { end(false); }
};
const bool watched = [] {
  if (!first_thread()) return false;
  static thread_local EndOfFirstThread watch;
  static_cast<void>(watch);
  return true;
}();

// The thread is between two parts of a job, or gone, whenever a process forks: a child has its
// memory, but not the thread, and would wait forever for what that held.
void leave() {
  State& s = state();
  Hold hold(s.lock);
  ++s.pauses;
  while (s.resting < s.current.size() || (s.running && !s.parked)) s.idle.wait(hold);
  if (!s.running) join(s, hold);
}
void come_back() {
  State& s = state();
  Hold hold(s.lock);
  --s.pauses;
  start(s, hold);
  s.idle.notify_all();
}
// The child has none of the other threads, which may have been compiling or waiting here. It begins
// with what is left of the jobs, and anew with those that were resting, when it gives one itself,
// or waits for them.
void come_back_later() {
  State& s = state();
  const Hold hold(s.lock);
  for (const JobRef& job : s.current)
    s.jobs.insert(s.jobs.begin() + static_cast<std::ptrdiff_t>(s.next), job);
  s.current.clear();
  s.resting = 0;
  s.made = s.running = s.parked = false;
  s.pauses = 0;
  s.uses = own_uses;
  new (&s.idle) std::condition_variable_any;
}

// With `lock` held, so that a fork comes by here before it waits for locks.
void prepare() {
  static const int prepared =
      std::atexit(end_of_process) + pthread_atfork(leave, come_back, come_back_later);
  static_cast<void>(prepared);
}

}  // namespace background_jobs

bool background_open() {
  static const bool on = tiers_from_environment().empty();
  if (!on) return false;
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  return !background_jobs::has_ended(s);
}

void in_background(Function<void()> job, std::weak_ptr<const void> of) {
  using namespace background_jobs;
  State& s = state();
  Hold hold(s.lock);
  if (has_ended(s)) return;
  prepare();
  sweep(s);
  const bool owned = !of.expired();
  s.jobs.push_back(std::make_shared<Job>(std::move(job), std::move(of), owned));
  start(s, hold);
}

BackgroundPause::BackgroundPause() {
  background_jobs::State& s = background_jobs::state();
  const std::lock_guard hold(s.lock);
  ++s.pauses;
}
BackgroundPause::~BackgroundPause() {
  background_jobs::State& s = background_jobs::state();
  background_jobs::Hold hold(s.lock);
  --s.pauses;
  background_jobs::start(s, hold);
  s.idle.notify_all();
}

ProcessEnds::ProcessEnds()
    : Error(ErrorKind::backend, "vt: the process ends, and nothing is compiled any more") {}

CompilerUse::CompilerUse() {
  using namespace background_jobs;
  State& s = state();
  const Hold hold(s.lock);
  // the end waits for the background thread to be gone
  if (!background_jobs::here && has_ended(s)) throw ProcessEnds();
  prepare();
  ++s.uses;
  if (own_uses++ == 0) broken_off = false;
}
CompilerUse::~CompilerUse() {
  using namespace background_jobs;
  State& s = state();
  const Hold hold(s.lock);
  --s.uses;
  // The handlers come before those of what the library has made so far: much at first, then less.
  --own_uses;
  if (std::has_single_bit(++s.past_uses)) std::atexit(end_of_process);
  s.idle.notify_all();
}

bool CompilerUse::is_broken_off() { return background_jobs::broken_off; }
void CompilerUse::break_off() { background_jobs::broken_off = true; }
void CompilerUse::watch(FunctionRef<void()> work) {
  try {
    work();
  } catch (const std::bad_alloc&) {
    break_off();
    throw;
  }
}
bool CompilerUse::on_this_thread() { return background_jobs::own_uses > 0; }

bool process_ends() {
  background_jobs::State& s = background_jobs::state();
  if (!s.ended.load(std::memory_order_relaxed)) return false;
  const std::lock_guard hold(s.lock);
  return background_jobs::has_ended(s);
}

void background_rest() {
  using namespace background_jobs;
  if (!in_job && own_uses == 0) return;
  State& s = state();
  Hold hold(s.lock);
  if (!in_job) {
    if (!has_ended(s)) return;
    throw ProcessEnds();
  }
  ++s.resting;
  s.parked = s.parked || here;
  if (s.pauses > 0) s.idle.notify_all();
  while (s.pauses > 0 && !s.ended) s.idle.wait(hold);
  --s.resting;
  s.parked = s.parked && !here;
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
  detail::background_jobs::Hold hold(s.lock);
  detail::background_jobs::start(s, hold);
  while (s.running || !s.current.empty() || !s.jobs.empty()) {
    // The thread gives way to all others: alone it might not get through them.
    if (s.pauses == 0 && !s.jobs.empty()) detail::background_jobs::run_next(s, hold);
    else s.idle.wait(hold);
  }
  detail::background_jobs::join(s, hold);
}

}  // namespace vt
