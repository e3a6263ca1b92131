// What the parts of vt's program of the suite distributed share: what a row is, and measuring it
// beside raw MPI in turns.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
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

/// The greatest error of an element in any process, relative to the greatest element.
inline double error_of(const std::vector<double>& values, const std::vector<double>& answers) {
  return raw::greatest(report::error_of(values, answers, answers.size()));
}

}  // namespace distributed
