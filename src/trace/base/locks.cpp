// What happens to locks when the process forks.
#include "locks.hpp"

#include <pthread.h>
#include <time.h>
#include <unistd.h>

#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <vt/error.hpp>

namespace vt::detail {

namespace forks {

struct State {
  std::mutex mutex;  ///< of the list; held while the process forks
  ThreadRecord* records = nullptr;
  pthread_key_t key{};  ///< whose destructor runs behind all others of a thread
  std::atomic<ThreadRecord*> forking = nullptr;
  std::atomic<int> behind{0};
  bool lost = false;  ///< the child will be
};
State& state() {
  static State* const s = new State;  // never destroyed: locks are taken while the process ends
  return *s;
}

#if defined(__linux__)
// of linux/membarrier.h, which old systems lack
constexpr int private_expedited = 1 << 3, register_private_expedited = 1 << 4;
bool barrier(int command) { return ::syscall(SYS_membarrier, command, 0) == 0; }
#else
constexpr int private_expedited = 0, register_private_expedited = 0;
bool barrier(int) { return false; }
#endif

/// All threads see what this one wrote, and it sees what they have.
void wait_for_writes() {
  if (!fences.load()) barrier(private_expedited);
}

bool any_other(std::atomic<int> ThreadRecord::* count) {
  const State& s = state();
  for (const ThreadRecord* r = s.records; r; r = r->next)
    if (r != s.forking.load() && (r->*count).load(std::memory_order_acquire) > 0) return true;
  return false;
}

void sleep_a_little() {
  const timespec time = {0, 50'000};
  ::nanosleep(&time, nullptr);
}

double now() {
  timespec t = {};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

void before_fork() {
  constexpr double patience = 0.5;  // seconds
  ThreadRecord& own = record();
  State& s = state();
  s.mutex.lock();
  s.forking.store(&own);
  no_calls.store(true);
  wait_for_writes();
  const double begin = now();
  while (any_other(&ThreadRecord::busy) && now() - begin < patience) sleep_a_little();
  s.lost = any_other(&ThreadRecord::busy);
  no_locks.store(true);
  wait_for_writes();
  while (any_other(&ThreadRecord::locks)) sleep_a_little();
}

void after_fork() {
  State& s = state();
  no_locks.store(false);
  no_calls.store(false);
  s.forking.store(nullptr);
  s.mutex.unlock();
}

void in_child() {
  State& s = state();
  if (s.lost) lost.store(true);
  // The memory of the others' records will be that of new threads.
  ThreadRecord* const own = s.forking.load();
  const bool has_listed_own = own->previous || s.records == own;
  s.records = has_listed_own ? own : nullptr;
  own->next = own->previous = nullptr;
  s.behind.fetch_add(1);
  if (!fences.load() && !barrier(register_private_expedited)) fences.store(true);
  after_fork();
}

void unlist(void* record) {
  auto* const r = static_cast<ThreadRecord*>(record);
  State& s = state();
  const std::lock_guard hold(s.mutex);
  (r->previous ? r->previous->next : s.records) = r->next;
  if (r->next) r->next->previous = r->previous;
}

/// vt may be in a library that is unloaded before its threads end.
struct KeyEnd {
  ~KeyEnd() { pthread_key_delete(state().key); }
};

// It allocates nothing: threads come by here where no memory is left.
void list_record(ThreadRecord& own) {
  State& s = state();
  const std::lock_guard hold(s.mutex);
  static const bool has_key = [&s] {
    fences.store(!barrier(register_private_expedited));
    pthread_atfork(before_fork, after_fork, in_child);
    if (pthread_key_create(&s.key, unlist) != 0) return false;
    static const KeyEnd end;
    return true;
  }();
  own.listed = true;  // also at the very end of the thread, when it is out of the list again
  if (!has_key || pthread_setspecific(s.key, &own) != 0) return;
  own.next = s.records;
  if (own.next) own.next->previous = &own;
  s.records = &own;
}

void wait_for_fork(std::atomic<int>& count, const std::atomic<bool>& closed) {
  if (state().forking.load() == &record_of_thread) return;
  do {
    leave(count);
    while (closed.load(std::memory_order_acquire)) sleep_a_little();
  } while (!enter(count, closed));
}

void refuse_lost_process() {
  throw Error(ErrorKind::backend,
              "vt: this process was forked while another thread was inside vt and did not leave it "
              "within half a second; what that thread held is lost here. Fork while no other "
              "thread uses vt, or call exec in the child");
}

}  // namespace forks

int forks_behind() { return forks::state().behind.load(std::memory_order_relaxed); }

}  // namespace vt::detail
