// How many threads work together on a row: by estimated times on a device of a usual size, so that
// the order of sums follows from shapes alone.
#pragma once

#include <string>

namespace vt::detail::cuda {

/// Rows that are reduced, as one kernel sees them.
struct RowWork {
  double elements = 1;  ///< of a row
  double rows = 1;
  double bytes = 4;   ///< of an element, of all arrays that are read along it
  double stages = 1;  ///< each of which ends with all of a thread group
  /// rows lie beside each other: neighbouring threads read neighbours, also where each has a row of
  /// its own
  bool beside = false;
};

struct ThreadGroupChoice {
  int thread_group = 1;
  int runner_up = 1;               ///< the next best
  double time = 0, next_time = 0;  ///< nanoseconds, about
  /// "256 threads for a row (about 3.1 µs) over 32 (7.5 µs)"
  std::string str() const;
};

/// About how long a kernel takes whose thread groups have so many threads, in nanoseconds.
double time_of_thread_groups(const RowWork&, int thread_group);
/// Of a thread, a warp and blocks; where rows lie beside each other of 1, 8 and 16 threads that
/// share a row. Of about equal ones the smallest.
ThreadGroupChoice choose_thread_group(const RowWork&);

}  // namespace vt::detail::cuda
