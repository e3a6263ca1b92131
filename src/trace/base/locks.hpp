// Locks that know when the process forks: a child has the memory of its parent, but only one of its
// threads, and waits forever for what another one holds.
#pragma once

#include <atomic>
#include <mutex>
#include <shared_mutex>

namespace vt::detail {

namespace forks {

/// What one thread is at. Only that thread writes.
struct ThreadRecord {
  std::atomic<int> locks{0};  ///< ShortMutexes held
  std::atomic<int> busy{0};   ///< see Busy
  bool listed = false;
  ThreadRecord *next = nullptr, *previous = nullptr;  ///< in the list that forks look through
};
inline constinit thread_local ThreadRecord record_of_thread;
void list_record(ThreadRecord&);
inline ThreadRecord& record() {
  ThreadRecord& own = record_of_thread;
  if (!own.listed) list_record(own);
  return own;
}

inline constinit std::atomic<bool> no_locks{false};  ///< set while the process forks
inline constinit std::atomic<bool> no_calls{false};  ///< … and while that waits for Busy threads
inline constinit std::atomic<bool> fences{false};    ///< see `enter`

// What the thread writes must be seen by who forks, or what that one has written must be seen here.
// Who forks has all processors wait for their writes, so that this costs nothing here, but where
// the system cannot do that.
inline bool enter(std::atomic<int>& count, const std::atomic<bool>& closed) {
  const int before = count.load(std::memory_order_relaxed);
  count.store(before + 1, std::memory_order_relaxed);
  if (before > 0) return true;
  if (fences.load(std::memory_order_relaxed)) count.exchange(1);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return !closed.load(std::memory_order_relaxed);
}
inline void leave(std::atomic<int>& count) {
  count.store(count.load(std::memory_order_relaxed) - 1, std::memory_order_release);
}
void wait_for_fork(std::atomic<int>& count, const std::atomic<bool>& closed);

inline void enter_lock() {
  ThreadRecord& r = record();
  if (!enter(r.locks, no_locks)) wait_for_fork(r.locks, no_locks);
}
inline void leave_lock() { leave(record().locks); }

inline constinit std::atomic<bool> lost{false};  ///< see Busy
[[noreturn]] void refuse_lost_process();

inline void enter_call() {
  if (lost.load(std::memory_order_relaxed)) refuse_lost_process();
  ThreadRecord& r = record();
  if (!enter(r.busy, no_calls)) wait_for_fork(r.busy, no_calls);
}
inline void leave_call() { leave(record().busy); }

}  // namespace forks

/// A mutex for short sections, which wait for nothing but another one of this kind: a fork waits
/// until all of them are free, so that they are in the child.
template <class M>
class ShortMutex {
 public:
  void lock() {
    forks::enter_lock();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    forks::leave_lock();
  }

 protected:
  M mutex_;
};
using Mutex = ShortMutex<std::mutex>;

class SharedMutex : public ShortMutex<std::shared_mutex> {
 public:
  void lock_shared() {
    forks::enter_lock();
    mutex_.lock_shared();
  }
  void unlock_shared() {
    mutex_.unlock_shared();
    forks::leave_lock();
  }
};

/// While one exists the thread is inside of a call that may hold for long what others need. A fork
/// lets no other thread begin one and waits, half a second at most, until there is none. Where one
/// goes on, the child is lost to vt: there the constructor throws Error (backend).
class Busy {
 public:
  Busy() { forks::enter_call(); }
  ~Busy() { forks::leave_call(); }
  Busy(const Busy&) = delete;
  Busy& operator=(const Busy&) = delete;
};

/// Of a thread that another one, which is busy, waits for: no fork holds it up.
class BusyForAnother {
 public:
  BusyForAnother() { forks::enter(forks::record().busy, forks::no_calls); }
  ~BusyForAnother() { forks::leave_call(); }
  BusyForAnother(const BusyForAnother&) = delete;
  BusyForAnother& operator=(const BusyForAnother&) = delete;
};

/// A mutex under which functions are recorded, or programs made or run.
template <class M = std::mutex>
class LongMutex {
 public:
  void lock() {
    forks::enter_call();
    mutex_.lock();
  }
  void unlock() {
    mutex_.unlock();
    forks::leave_call();
  }

 private:
  M mutex_;
};

/// How many forks lie between the process that first used vt and this one: what was made in another
/// one has lost its threads.
int forks_behind();

}  // namespace vt::detail
