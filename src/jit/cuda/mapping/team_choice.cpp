// The time of a row by the number of threads that share it.
#include "team_choice.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <vt/detail/message.hpp>

#include "../driver/device_costs.hpp"

namespace vt::detail::cuda {

namespace team_choice {

// bytes that a device reads at least, and keeps together in its nearest cache
constexpr double sector = 32, line = 128;

// Until all threads of a team know a result: a tree of shuffles within a warp, beyond it shared
// memory and two barriers.
double combining(int team, bool beside) {
  if (team == 1) return 0;
  if (beside) return device_costs::barrier + team * device_costs::shared_read;
  return 5 * device_costs::shuffle +
         (team > 32 ? 2 * device_costs::barrier + team / 32 * device_costs::shared_read : 0);
}

// So many times the bytes are read: a thread that walks along a row of its own reads a sector where
// it wants an element, and the others of its warp are elsewhere; short rows find the rest of it in
// the cache, as far as that holds all threads' lines.
double repeated(const RowWork& w, int team) {
  if (team > 1 || w.beside) return 1;
  const double row = w.elements * w.bytes;
  if (row <= sector) return 1;
  if (row <= line) return 2;
  return std::min(std::max(1.0, sector / w.bytes), 8.0);
}

}  // namespace team_choice

double time_of_teams(const RowWork& w, int team) {
  using namespace device_costs;
  const double rounds = std::ceil(w.elements / team),
               together = w.stages * team_choice::combining(team, w.beside);
  const double waves = std::max(1.0, w.rows * team / usual_threads);
  const double waiting = waves * (rounds * load_wait + together);
  const double memory =
      w.rows * w.elements * w.bytes * team_choice::repeated(w, team) / usual_bandwidth;
  const double warps = w.rows * team / 32;
  const double instructions =
      warps * (rounds * round_instructions + (team > 1 ? w.stages * tree_instructions : 0)) /
      usual_instructions;
  return std::max({waiting, memory, instructions});
}

TeamChoice choose_team(const RowWork& w) {
  constexpr double about_equal = 0.95, least_saved = 300;  // nanoseconds: small against a launch
  TeamChoice c;
  const auto consider = [&](std::initializer_list<int> teams) {
    for (int team : teams) {
      const double time = time_of_teams(w, team);
      if (c.time == 0 || (time < about_equal * c.time && time < c.time - least_saved)) {
        c.runner_up = c.team, c.next_time = c.time;
        c.team = team, c.time = time;
      } else if (c.next_time == 0 || time < c.next_time) {
        c.runner_up = team, c.next_time = time;
      }
    }
  };
  if (w.beside) consider({1, 8, 16});
  else if (w.elements <= 16384) consider({1, 32, 256});
  else consider({1, 32, 256, 512});
  return c;
}

std::string TeamChoice::str() const {
  const auto microseconds = [](double ns) { return std::round(ns / 10) / 100; };
  return worded("{} thread{} for a row (about {} µs) over {} ({} µs{})", team, team == 1 ? "" : "s",
                microseconds(time), runner_up, microseconds(next_time),
                next_time < time ? ", which saves too little" : "");
}

}  // namespace vt::detail::cuda
