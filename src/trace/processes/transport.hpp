// Transport: carries bytes between the ranks of a world, from one to another. World builds the
// collectives on it, so that they are the same over threads and over MPI.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <string>

namespace vt::detail {

/// Seconds of CLOCK_MONOTONIC, which all processes of a machine share.
inline double monotonic_seconds() {
  timespec t = {};
  ::clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_nsec) * 1e-9;
}

/// What a rank tells all others beside the data: that it has failed or ended, where it waits, or
/// that it gave up waiting, and why: then all others give up for the same reason.
struct Notice {
  enum class Kind : unsigned char { failed, left, waits, over, threw };
  Kind kind = Kind::failed;
  int rank = 0;
  /// `waits`: the collective's number in its group of ranks, the group, what it is (equal on all
  /// ranks that are at the same one), and how long it has waited, in seconds
  /// `threw`: how far it had come in the group; the last notice of an error has group 0
  std::int64_t number = 0;
  std::uint64_t group = 0, what = 0;
  /// `waits`, `threw`: the call; `waits`: the group's number as that call began
  std::int64_t call = 0, base = 0;
  double seconds = 0;
  std::string
      text;  ///< `failed`, `threw`: the message; `waits`: the collective and its line; `over`: why
};

/// One transfer that has begun. Its memory is the owner's until it is done or dropped; it stays
/// where it is so long.
struct Transfer {
  alignas(16) unsigned char handle[32] = {};
  int peer = 0;  ///< the rank at the other end
  bool active = false;
};

/// Of one rank. Only one thread calls it at a time. Throws: Error (backend) with what the library
/// says.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  virtual const char* name() const = 0;   ///< "threads", "Open MPI 4.1.4", for messages
  virtual int ranks_of_host() const = 0;  ///< how many run on this machine

  /// Transfers between two ranks with the same tag arrive in the order in which they were begun.
  /// tag: 0 … 16383.
  virtual void begin_send(int to, int tag, const void*, std::size_t bytes, Transfer&) = 0;
  virtual void begin_receive(int from, int tag, void*, std::size_t bytes, Transfer&) = 0;
  /// Is it done? Never waits; drives the library on.
  virtual bool is_done(Transfer&) = 0;
  /// After a failure: nothing is written into its memory any more.
  virtual void drop(Transfer&) noexcept = 0;

  /// Never waits for the others, never throws.
  virtual void tell_all(const Notice&) noexcept = 0;
  /// The next one that has come from another rank, if there is one.
  virtual bool hear(Notice&) = 0;
  /// Is its process known to be gone?
  virtual bool is_gone(int) { return false; }
  /// The process ends. Waits for the others to end as well, where the library wants that; of a
  /// world in which a rank has failed no longer than so many seconds.
  virtual void finish(bool, double) noexcept {}
};

}  // namespace vt::detail
