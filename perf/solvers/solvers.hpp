// The parts of the program bench_solvers, and what they share.
#pragma once

#include <cstdint>
#include <random>
#include <string>

#include <vt/vt.hpp>

#include "report.hpp"

namespace solvers {

using report::Numbers;
using vt::Tensor;

/// Each part prints the rows whose name is `row`, and those below it; false if it is no row of it.
bool fit_rows(const std::string& row);
bool equation_rows(const std::string& row);
bool small_rows(const std::string& row);
/// How exact solutions of known problems are, by tolerance.
void figures();

inline Numbers uniform(std::size_t n, double low, double high, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> draw(low, high);
  Numbers values(n);
  for (double& v : values) v = draw(bits);
  return values;
}

/// A row of vt with the times of `body`, which waits for its results: of the first call, in which
/// it is compiled, and of later ones; and the most memory that the program had until then.
template <class F>
report::Row timed(const std::string& name, const std::string& who, double lanes, const F& body) {
  std::ofstream("/proc/self/clear_refs") << 5;  // the peak of memory begins anew
  const auto begin = std::chrono::steady_clock::now();
  const double processor = report::seconds(CLOCK_PROCESS_CPUTIME_ID);
  body();
  const std::chrono::duration<double> first = std::chrono::steady_clock::now() - begin;
  vt::wait_compiled();
  const double first_processor = report::seconds(CLOCK_PROCESS_CPUTIME_ID) - processor;
  body();
  report::Row row{name, who, report::median_seconds(body), lanes};
  row.first = std::max(0.0, first.count() - row.seconds);
  row.first_processor = std::max(0.0, first_processor - row.seconds);
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;)
    if (word == "VmHWM:" && status >> row.megabytes) row.megabytes /= 1024;
  return row;
}

}  // namespace solvers
