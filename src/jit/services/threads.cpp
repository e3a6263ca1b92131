// Threads through Eigen's non-blocking pool; the only file that includes it.
#include "threads.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <unistd.h>

// Eigen's pool is a template-free part of its unsupported tensor module and needs nothing else of
// Eigen.
#if __has_include(<unsupported/Eigen/CXX11/ThreadPool>)
#include <unsupported/Eigen/CXX11/ThreadPool>
#else
// where distributions put it, for prototypes with a single -I
#include <eigen3/unsupported/Eigen/CXX11/ThreadPool>
#endif

#include <vt/detail/function.hpp>
#include <vt/detail/message.hpp>
#include <vt/execution.hpp>

#include "../../trace/base/environment.hpp"
#include "../../trace/base/locks.hpp"
#include "../../trace/base/timeline.hpp"
#include "../../trace/base/warnings.hpp"
#include "../../trace/ir/graph.hpp"
#include "background.hpp"

namespace vt::detail {

namespace kernel_threads {

constexpr int most_threads = 1024;

int processors() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 256u));
}

/// Each thread takes memory for its stack; several for a processor still make sense, as when a
/// machine is to behave like another one.
int usable(int count) {
  const int most = std::max(16, 4 * processors());
  if (count <= most) return count;
  warn_once(
      formatted("{} threads are asked for, of which {} are used: this machine has {} processor{}",
                count, most, processors(), processors() == 1 ? "" : "s"));
  return most;
}

/// Processors for this process: those that it may run on, shared with the other processes that MPI
/// has started on this host, unless the launcher has given each of them some of its own.
int own_processors() {
  const int processes = processes_of_host();
  const bool own = std::int64_t{processors()} * processes <= ::sysconf(_SC_NPROCESSORS_ONLN);
  return own ? processors() : std::max(1, processors() / processes);
}

int default_count() {
  return usable(static_cast<int>(
      number_from_environment("VT_NUM_THREADS", 1, most_threads, own_processors())));
}

thread_local bool inside = false;

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

using Clock = std::chrono::steady_clock;

// Another thread is woken for so much work that is left, or when launches have followed one another
// for so long, with pauses of at most this.
constexpr auto worth_waking = std::chrono::microseconds(75),
               long_succession = std::chrono::microseconds(100),
               short_pause = std::chrono::microseconds(30);

// Ranges are taken from a shared counter, so that a thread that is late takes fewer.
struct Work {
  std::atomic<std::int64_t> next{0};
  std::int64_t total, step;
  RangeBody body;
  void* context;
  Span::Label label;  ///< in timelines
  // not yet done; the caller returns at 0, whether or not every thread has transposed up
  std::atomic<std::int64_t> left;
  // Of what ranges have thrown, that of the first one in order; those behind it are not begun any
  // more.
  Mutex mutex;
  std::atomic<std::int64_t> thrown_at{std::numeric_limits<std::int64_t>::max()};
  std::exception_ptr thrown;
  // of the caller
  std::int64_t own_total = 0;
  Clock::duration own_time{};
  Clock::time_point begin{}, succession{};
  const FunctionRef<void()>* wake = nullptr;  ///< called once it is worth it, between two ranges

  void failed(std::int64_t begin) {
    const std::lock_guard lock(mutex);
    if (begin > thrown_at) return;
    thrown = std::current_exception();
    thrown_at = begin;
  }

  /// Takes ranges until there are none; returns how much they are.
  std::int64_t take(bool of_caller = false) {
    const BusyForAnother busy;
    const bool before = inside;
    inside = true;
    std::int64_t taken = 0;
    for (std::int64_t first; (first = next.fetch_add(step, std::memory_order_relaxed)) < total;) {
      if (of_caller && wake && is_worth_waking(taken)) (*std::exchange(wake, nullptr))();
      const std::int64_t end = std::min(first + step, total);
      taken += end - first;
      if (first < thrown_at.load(std::memory_order_relaxed)) {
        const Span span(label);
        try {
          body(context, first, end);
        } catch (...) {
          failed(first);
        }
      }
      if (left.fetch_sub(end - first, std::memory_order_acq_rel) == end - first) left.notify_one();
    }
    inside = before;
    return taken;
  }

  /// After so much.
  bool is_worth_waking(std::int64_t taken) const {
    const Clock::time_point now = Clock::now();
    const std::int64_t rest = total - next.load(std::memory_order_relaxed);
    const auto ratio =
        static_cast<double>(rest) / static_cast<double>(std::max<std::int64_t>(taken, 1));
    return now - succession >= long_succession ||
           (taken > 0 && (now - begin) * ratio >= worth_waking);
  }

  /// The caller's part: its ranges, then the wait for those of others.
  void take_and_wait() {
    begin = Clock::now();
    own_total = take(true);
    own_time = Clock::now() - begin;
    wait();
  }

  // The others take ranges until there are none, so they are about as soon through as one range
  // takes. Who is not has lost its processor, and may get this one.
  void wait() {
    for (int i = 0; i < 100; ++i, pause())
      if (left.load(std::memory_order_acquire) == 0) return;
    const std::int64_t own_ranges = std::max<std::int64_t>((own_total + step - 1) / step, 1);
    const auto until = Clock::now() + own_time / own_ranges + std::chrono::microseconds(10);
    for (int i = 1; left.load(std::memory_order_acquire) != 0; ++i) {
      pause();
      if (i % 32 == 0 && Clock::now() > until) break;
    }
    for (std::int64_t n; (n = left.load(std::memory_order_acquire)) != 0;)
      left.wait(n, std::memory_order_acquire);
  }

  /// How long one thread would have taken, as far as the caller's ranges tell.
  Clock::duration alone() const {
    if (own_total == 0) return {};
    return std::chrono::duration_cast<Clock::duration>(
        own_time * (static_cast<double>(total) / static_cast<double>(own_total)));
  }
};

// Where launches are announced to threads that have just finished one: most come in quick
// succession, and waking a sleeping thread takes longer than a small kernel.
struct Board {
  std::atomic<std::uint64_t> launches{0};
  std::atomic<int> lookers{0};  ///< threads that will see the next launch
  Mutex mutex;
  std::shared_ptr<Work> newest;
  std::atomic<Clock::time_point> last_end{}, first_begin{};

  /// When the first of launches in quick succession began, of which one begins now.
  Clock::time_point succession(Clock::time_point now) {
    if (now - last_end.load(std::memory_order_relaxed) > short_pause)
      first_begin.store(now, std::memory_order_relaxed);
    return first_begin.load(std::memory_order_relaxed);
  }
  void announce(const std::shared_ptr<Work>& work) {
    {
      std::lock_guard lock(mutex);
      newest = work;
    }
    launches.fetch_add(1);
  }

  // Works on `work`, then on what is announced within a while after.
  void serve(std::shared_ptr<Work> work) {
    for (;;) {
      const std::uint64_t seen = launches.load();
      work->take();
      work.reset();
      lookers.fetch_add(1);
      const auto until = std::chrono::steady_clock::now() + std::chrono::microseconds(100);
      for (int i = 0; launches.load() == seen; ++i) {
        pause();
        if (i % 32 == 0 && std::chrono::steady_clock::now() > until) break;
      }
      lookers.fetch_sub(1);
      // Asked after it has stopped to count as a looker: whoever announces a launch sees one or the
      // other.
      if (launches.load() == seen) return;
      std::lock_guard lock(mutex);
      work = newest;
    }
  }
};

// Whether several threads are worth it. Where another program has a processor for some time, a
// launch waits for the thread that has lost it, and takes longer than one thread would. What
// launches win and lose by that is added up; below 0, launches go on one thread until what was lost
// is a small part of their time.
class Gains {
 public:
  bool positive() const { return balance_.load(std::memory_order_relaxed) >= 0; }
  /// `woken`: what waking others took is not lost, as those are awake for the next launches.
  void several(Clock::duration alone, Clock::duration taken, bool woken) {
    if (alone.count() == 0) return;
    const Clock::duration gain = alone - taken, allowed = woken ? usual_wake : Clock::duration();
    add((gain.count() > 0 ? gain : std::min(gain + allowed, Clock::duration())).count());
  }
  void one(Clock::duration taken) { add(taken.count() / most_lost); }

 private:
  static constexpr Clock::rep most = 20'000'000, most_lost = 20;  // nanoseconds; one part of
  static constexpr Clock::duration usual_wake = std::chrono::microseconds(100);
  void add(Clock::rep gain) {
    const Clock::rep now = balance_.load(std::memory_order_relaxed);
    balance_.store(std::min(now + gain, most), std::memory_order_relaxed);
  }
  std::atomic<Clock::rep> balance_{0};
};
Gains& gains() {
  static Gains all;
  return all;
}

// How Eigen's pool gets its threads. One that the system refuses is left out: the others, and the
// caller, take its ranges.
struct Threads {
  struct Task {
    std::function<void()> f;
  };
  class EnvThread {
   public:
    explicit EnvThread(std::function<void()> f) : thread_(std::move(f)) {}
    ~EnvThread() { thread_.join(); }
    void OnCancel() {}

   private:
    std::thread thread_;
  };
  EnvThread* CreateThread(std::function<void()> f) {
    try {
      return new EnvThread(std::move(f));
    } catch (const std::system_error& e) {
      warn_once(
          std::string("kernels run on fewer threads than asked for: the system starts no more: ") +
          e.what());
      return nullptr;
    }
  }
  Task CreateTask(std::function<void()> f) { return {std::move(f)}; }
  void ExecuteTask(const Task& t) { t.f(); }
};
using Pool = Eigen::ThreadPoolTempl<Threads>;

// The pool is made at the first parallel launch and again after set_num_threads; a launch in flight
// keeps the old one alive.
struct State {
  Mutex mutex;
  std::atomic<int> wanted{default_count()};
  std::shared_ptr<Pool> pool;
  std::shared_ptr<Board> board;  ///< of the pool's threads
  int pool_count = 0;
  int process = 0;                          ///< see forks_behind
  std::vector<std::shared_ptr<Pool>> lost;  ///< whose threads are in another process

  /// With the mutex held.
  void forget_lost() {
    if (std::exchange(process, forks_behind()) == process || !pool) return;
    lost.push_back(std::move(pool));
    pool = nullptr;
    board = nullptr;
  }
};
State& state() {
  // Never destroyed: kernels may run in other static objects' destructors, and joining threads
  // there can hang.
  static State* const s = new State;
  return *s;
}

struct PoolAndBoard {
  std::shared_ptr<Pool> pool;
  std::shared_ptr<Board> board;
};
PoolAndBoard pool_of(int count) {
  State& s = state();
  std::lock_guard lock(s.mutex);
  s.forget_lost();
  if (!s.pool || s.pool_count != count) {
    const SignalsBlocked quiet;
    s.pool = std::make_shared<Pool>(count - 1);
    s.board = std::make_shared<Board>();
    s.pool_count = count;
  }
  return {s.pool, s.board};
}

}  // namespace kernel_threads

int thread_count() {
  return has_one_processor ? 1 : kernel_threads::state().wanted.load(std::memory_order_relaxed);
}

bool others_ready() {
  if (kernel_threads::inside || !kernel_threads::gains().positive()) return false;
  kernel_threads::State& s = kernel_threads::state();
  std::lock_guard lock(s.mutex);
  s.forget_lost();
  return s.board && s.board->lookers.load() > 0;
}

void parallel_ranges(std::int64_t total, std::int64_t grain, RangeBody body, void* context,
                     int ranges, Wake wake) {
  using namespace kernel_threads;
  grain = std::max<std::int64_t>(grain, 1);
  const std::int64_t grains = (total + grain - 1) / grain;
  const int count = static_cast<int>(std::min<std::int64_t>(thread_count(), grains));
  if (count <= 1 || inside) {
    if (total > 0) body(context, 0, total);
    return;
  }
  const Clock::time_point since = Clock::now();
  const std::int64_t step =
      std::max<std::int64_t>(grains / (std::int64_t{count} * ranges), 1) * grain;
  if (!gains().positive()) {
    for (std::int64_t begin = 0; begin < total; begin += step)
      body(context, begin, std::min(begin + step, total));
    return gains().one(Clock::now() - since);
  }
  const PoolAndBoard threads = pool_of(thread_count());
  auto work = std::make_shared<Work>();
  work->total = total;
  work->step = step;
  work->body = body;
  work->context = context;
  if (timeline_wanted()) work->label = Span::innermost();
  work->left.store(total, std::memory_order_relaxed);
  threads.board->announce(work);
  bool woken = false;
  const auto wake_sleepers = [&] {
    for (int i = 1 + threads.board->lookers.load(); i < count; ++i, woken = true)
      threads.pool->Schedule([work, board = threads.board] { board->serve(work); });
  };
  const FunctionRef<void()> later = wake_sleepers;
  if (wake == Wake::at_once) {
    wake_sleepers();
  } else {
    work->succession = threads.board->succession(since);
    work->wake = &later;
  }
  work->take_and_wait();
  const Clock::time_point end = Clock::now();
  threads.board->last_end.store(end, std::memory_order_relaxed);
  gains().several(work->alone(), end - since, woken);
  if (work->thrown) std::rethrow_exception(work->thrown);
}

}  // namespace vt::detail

namespace vt {

void set_num_threads(Param<int> count, CallSite where) {
  if (count < 1 || count > detail::kernel_threads::most_threads)
    detail::fail(ErrorKind::value,
                 "vt::set_num_threads: " + std::to_string(count) + " is not between 1 and 1024",
                 where);
  detail::kernel_threads::state().wanted.store(detail::kernel_threads::usable(count),
                                               std::memory_order_relaxed);
}

int num_threads() { return detail::thread_count(); }

}  // namespace vt
