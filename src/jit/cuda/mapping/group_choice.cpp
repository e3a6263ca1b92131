// What a row costs by the number of its threads.
#include "group_choice.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <vt/detail/message.hpp>

#include "../driver/device_costs.hpp"

namespace vt::detail::cuda {

namespace thread_group_choice {

// bytes that a device reads at least, and keeps together in its nearest cache
constexpr double sector = 32, line = 128;

// Until all threads of a thread group know a result: a tree of shuffles within a warp, beyond it
// shared memory and two barriers.
double combining(int thread_group, bool beside) {
  if (thread_group == 1) return 0;
  if (beside) return device_costs::barrier + thread_group * device_costs::shared_read;
  return 5 * device_costs::shuffle +
         (thread_group > 32
              ? 2 * device_costs::barrier + thread_group / 32 * device_costs::shared_read
              : 0);
}

// So many times the bytes are read: a thread that walks along a row of its own reads a sector where
// it wants an element, and the others of its warp are elsewhere; short rows find the rest of it in
// the cache, as far as that holds all threads' lines.
double repeated(const RowWork& w, int thread_group) {
  if (thread_group > 1 || w.beside) return 1;
  const double row = w.elements * w.bytes;
  if (row <= sector) return 1;
  if (row <= line) return 2;
  return std::min(std::max(1.0, sector / w.bytes), 8.0);
}

}  // namespace thread_group_choice

double time_of_thread_groups(const RowWork& w, int thread_group) {
  using namespace device_costs;
  const double iterations = std::ceil(w.elements / thread_group),
               together = w.stages * thread_group_choice::combining(thread_group, w.beside);
  const double waves = std::max(1.0, w.rows * thread_group / usual_threads);
  const double waiting = waves * (iterations * load_wait + together);
  const double memory = w.rows * w.elements * w.bytes *
                        thread_group_choice::repeated(w, thread_group) / usual_bandwidth;
  const double warps = w.rows * thread_group / 32;
  const double instructions =
      warps *
      (iterations * round_instructions + (thread_group > 1 ? w.stages * tree_instructions : 0)) /
      usual_instructions;
  return std::max({waiting, memory, instructions});
}

ThreadGroupChoice choose_thread_group(const RowWork& w) {
  constexpr double about_equal = 0.95, least_saved = 300;  // nanoseconds: small against a launch
  ThreadGroupChoice c;
  const auto consider = [&](std::initializer_list<int> thread_groups) {
    for (int thread_group : thread_groups) {
      const double time = time_of_thread_groups(w, thread_group);
      if (c.time == 0 || (time < about_equal * c.time && time < c.time - least_saved)) {
        c.runner_up = c.thread_group, c.next_time = c.time;
        c.thread_group = thread_group, c.time = time;
      } else if (c.next_time == 0 || time < c.next_time) {
        c.runner_up = thread_group, c.next_time = time;
      }
    }
  };
  if (w.beside) consider({1, 8, 16});
  else if (w.elements <= 16384) consider({1, 32, 256});
  else consider({1, 32, 256, 512});
  return c;
}

std::string ThreadGroupChoice::str() const {
  const auto microseconds = [](double ns) { return std::round(ns / 10) / 100; };
  return formatted("{} thread{} for a row (about {} µs) over {} ({} µs{})", thread_group,
                   thread_group == 1 ? "" : "s", microseconds(time), runner_up,
                   microseconds(next_time), next_time < time ? ", which saves too little" : "");
}

}  // namespace vt::detail::cuda
