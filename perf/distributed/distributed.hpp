// What the parts of vt's program of the suite distributed share: what a row is, and measuring it
// beside raw MPI in turns.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include <vt/distributed.hpp>
#include <vt/vt.hpp>

#include "../solvers/report.hpp"
#include "raw.hpp"

#ifndef VT_MPI_FAMILY
#define VT_MPI_FAMILY "mpi"
#endif

namespace distributed {

using vt::Tensor;

/// Rows of the program, by name; false: it is none of these.
bool collective_row(const std::string& row);
bool program_row(const std::string& row);

/// One side of a row: what runs, how many times that does what a figure is of, and who it is.
struct Side {
  std::string who;
  std::function<void()> body;
  double times = 1;
  double error = 0, allowed = 0;  ///< of its answers
};

/// Prints for each side the best of 50 rounds, or of as many as begin in 0.5 s; in each of them all
/// take turns, and the slowest process counts. And the median of how many times as long as the
/// first side it takes in a round.
inline void measure(const std::string& name, const std::vector<Side>& sides) {
  std::vector<std::vector<double>> times(sides.size()), ratios(sides.size());
  for (const Side& side : sides)
    for (int i = 0; i < 3; ++i) side.body();
  vt::wait_compiled();
  double spent = 0;  // the same in all processes
  for (int round = 0; round < 50 || (spent < 0.5 && round < 5000); ++round)
    for (std::size_t i = 0; i < sides.size(); ++i) {
      raw::barrier();
      const auto start = std::chrono::steady_clock::now();
      sides[i].body();
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const double slowest = raw::greatest(seconds);
      spent += slowest;
      times[i].push_back(slowest / sides[i].times);
      ratios[i].push_back(times[i].back() / times[0].back());
    }
  if (raw::rank() != 0) return;
  const std::string full = std::string(VT_MPI_FAMILY) + "/" + name;
  for (std::size_t i = 0; i < sides.size(); ++i) {
    if (!(sides[i].error <= sides[i].allowed))
      throw std::runtime_error(full + ": the answers of " + sides[i].who + " differ by " +
                               std::to_string(sides[i].error));
    std::ranges::sort(ratios[i]);
    std::printf("{\"name\": \"%s\", \"who\": \"%s\", \"seconds\": %.6g, \"ratio\": %.6g}\n",
                full.c_str(), sides[i].who.c_str(), std::ranges::min(times[i]),
                ratios[i][ratios[i].size() / 2]);
  }
  std::fflush(stdout);
}

/// Prints what vt::distributed::scaling predicts for as many processes as there are, beside what it
/// measured: with the compute as it is on all of them, and with that of one process that runs its
/// part alone while the others wait. The median of five rounds. `make` gives the function for the
/// processes that are there.
template <class Make, class... A>
void compare_prediction(const std::string& name, double times, Make make, const A&... arguments) {
  constexpr const char* who[] = {"measured", "predicted",      "predicted from one",
                                 "compute",  "compute of one", "wait",
                                 "transfer"};
  std::vector<std::vector<double>> seconds(std::size(who));
  for (int round = 0; round < 5; ++round) {
    const auto together = vt::distributed::scaling(make())(arguments...);
    double alone = 0, compute_alone = 0;
    raw::barrier();
    if (raw::rank() == 0)
      vt::distributed::simulate(1, [&] {
        const auto report = vt::distributed::scaling(
            make(), {.link = together.link(), .processes_of_host = raw::size()})(arguments...);
        alone = report.predict(raw::size());
        compute_alone = report.measured().compute;
      });
    raw::barrier();
    const vt::distributed::StepTime parts = together.parts(raw::size());
    const double found[] = {together.seconds(), parts.seconds(), alone,         parts.compute,
                            compute_alone,      parts.wait,      parts.transfer};
    for (std::size_t k = 0; k < std::size(who); ++k) seconds[k].push_back(found[k]);
  }
  if (raw::rank() != 0) return;
  for (std::size_t k = 0; k < std::size(who); ++k) {
    std::ranges::sort(seconds[k]);
    std::printf("{\"name\": \"%s/%s\", \"who\": \"%s\", \"seconds\": %.6g}\n", VT_MPI_FAMILY,
                name.c_str(), who[k], seconds[k][seconds[k].size() / 2] / times);
  }
  std::fflush(stdout);
}

/// The greatest error of an element in any process, relative to the greatest element.
inline double error_of(const std::vector<double>& values, const std::vector<double>& answers) {
  return raw::greatest(report::error_of(values, answers, answers.size()));
}

}  // namespace distributed
