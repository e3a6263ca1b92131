// What the programs of the suite solvers share, vt's and its peers': the inputs and answers of a
// row, which vt's program leaves in files; errors; times of the processor; and the lines of JSON
// that they print. C++17, as some peers need it.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <regex>
#include <string>
#include <vector>

namespace report {

using Numbers = std::vector<double>;

/// Seconds of the processor: of this thread, or of all threads of this program.
inline double seconds(clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

/// The median of what one call takes: of at least five, unless they take more than 20 s; of more
/// for 0.3 s.
template <class F>
double median_seconds(F body) {
  constexpr double enough = 0.3, most = 20, least = 2e-4;
  int calls = 1;  // together, so that the clock is exact enough
  Numbers times;
  const double begin = seconds();
  for (double spent = 0; times.empty() || (times.size() < 5 ? spent < most : spent < enough);
       spent = seconds() - begin) {
    const double start = seconds();
    for (int i = 0; i < calls; ++i) body();
    const double taken = seconds() - start;
    if (taken < least) calls = taken > 0 ? 1 + static_cast<int>(calls * least / taken) : 2 * calls;
    else times.push_back(taken / calls);
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
                   times.end());
  return times[times.size() / 2];
}

/// The file of `what` ("images", "answers" …) of a row, in the folder that the arguments name.
inline std::string folder = ".";
inline std::string file_of(const std::string& name, const std::string& what) {
  return folder + "/" + std::regex_replace(name, std::regex("/"), "_") + "." + what;
}
inline void write(const std::string& name, const std::string& what, const Numbers& values) {
  std::ofstream(file_of(name, what), std::ios::binary)
      .write(reinterpret_cast<const char*>(values.data()),
             static_cast<std::streamsize>(values.size() * sizeof(double)));
}
inline Numbers read(const std::string& name, const std::string& what) {
  std::ifstream file(file_of(name, what), std::ios::binary | std::ios::ate);
  if (!file) {
    std::fprintf(stderr, "%s: there is no %s: vt's program must run before its peers\n",
                 name.c_str(), what.c_str());
    std::exit(1);
  }
  Numbers values(static_cast<std::size_t>(file.tellg()) / sizeof(double));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(values.data()),
            static_cast<std::streamsize>(values.size() * sizeof(double)));
  return values;
}

/// The greatest error of an element, relative to it or, where a lane of `width` elements is given,
/// to the greatest element of its lane. Elements may be fewer than answers.
inline double error_of(const Numbers& values, const Numbers& answers, std::size_t width = 1) {
  double worst = values.empty() || values.size() > answers.size() ? INFINITY : 0;
  for (std::size_t i = 0; i < values.size() && worst < INFINITY; i += width) {
    double most = 0, off = 0;
    for (std::size_t k = i; k < i + width; ++k) {
      most = std::max(most, std::abs(answers[k]));
      const double difference = std::abs(values[k] - answers[k]);
      off = difference <= off ? off : difference;  // NaN is worst of all
    }
    const double relative = off / most;
    if (!(relative <= worst)) worst = relative >= 0 ? relative : INFINITY;
  }
  return worst;
}

/// A row of the table; a negative figure is one that there is not.
struct Row {
  std::string name, who;
  double seconds;                           ///< of all lanes
  double lanes = 1;                         ///< those that were timed
  double error = -1;                        ///< of the answers
  double allowed = 0;                       ///< the greatest error that does not end the program
  double work = -1;                         ///< steps that were tried, or calls of the function
  double first = -1, first_processor = -1;  ///< of the first call beyond a later one
  double megabytes = -1;                    ///< that the program took at most
  double rtol = -1;                         ///< that was asked for
};
inline void print(const Row& row) {
  if (row.error >= 0 && !(row.error <= row.allowed)) {
    std::fprintf(stderr, "%s: the answers of %s are off by %.3g, more than %.3g\n",
                 row.name.c_str(), row.who.c_str(), row.error, row.allowed);
    std::exit(1);
  }
  std::printf("{\"name\": \"%s\", \"who\": \"%s\", \"seconds\": %.6g, \"lanes\": %.0f",
              row.name.c_str(), row.who.c_str(), row.seconds, row.lanes);
  const auto figure = [](const char* name, double value) {
    if (value >= 0) std::printf(", \"%s\": %.6g", name, value);
  };
  figure("error", row.error);
  figure("work", row.work);
  figure("first_s", row.first);
  figure("first_processor_s", row.first_processor);
  figure("megabytes", row.megabytes);
  figure("rtol", row.rtol);
  std::printf("}\n");
  std::fflush(stdout);
}

/// The arguments of all programs: FOLDER ROW, or FOLDER figures. Gives the row.
inline std::string arguments(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s FOLDER ROW; ROW may be figures\n", argv[0]);
    std::exit(2);
  }
  folder = argv[1];
  return argv[2];
}
/// The last part of a row's name, as 10000 of lorenz/10000, and what is before it.
inline std::string last_part(const std::string& name) { return name.substr(name.rfind('/') + 1); }
inline std::string first_part(const std::string& name) { return name.substr(0, name.find('/')); }

}  // namespace report
