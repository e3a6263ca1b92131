// What the benchmarks share: registering a row by name, and timing in a process of its own.
#pragma once

#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

#include "data.hpp"

namespace perf {

/// Registers `body` as the row `name`; `work` units of `unit` are done per call (flops, bytes,
/// elements).
template <class F>
void row(const std::string& name, F body, double work = 0, const char* unit = "") {
  benchmark::RegisterBenchmark(name.c_str(),
                               [body, work, unit](benchmark::State& state) mutable {
                                 body();
                                 vt::wait_compiled();
                                 for (auto _ : state) body();
                                 if (work > 0)
                                   state.counters[unit] = benchmark::Counter(
                                       work * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
                               })
      ->UseRealTime()
      ->MeasureProcessCPUTime();
}

/// The same, with `threads` set for vt before the first call.
template <class F>
void row_on(int threads, const std::string& name, F body, double work = 0, const char* unit = "") {
  row(
      name,
      [body, threads]() mutable {
        if (vt::num_threads() != threads) vt::set_num_threads(threads);
        body();
      },
      work, unit);
}

/// Runs this program again with the arguments `mode` and `seed`, which times something and prints
/// milliseconds.
inline double timed_apart(const std::string& mode, unsigned seed, const std::string& cache) {
  int channel[2];
  if (pipe(channel) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDOUT_FILENO);
    close(channel[0]);
    setenv("VT_CACHE_DIR", cache.c_str(), 1);
    execl("/proc/self/exe", "bench", mode.c_str(), std::to_string(seed).c_str(), nullptr);
    _exit(127);
  }
  close(channel[1]);
  char text[64] = {};
  for (ssize_t n, at = 0; at < 63 && (n = read(channel[0], text + at, 63 - at)) > 0;) at += n;
  close(channel[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? std::atof(text) : -1;
}

/// Registers what `mode` times in a process of its own, whose cache folder is empty or, if
/// `cached`, that of another such process.
inline void first_call_row(const std::string& name, const std::string& mode, bool cached) {
  static const std::string root =
      std::filesystem::temp_directory_path() / ("vt-bench-" + std::to_string(getpid()));
  static const int removed = std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(root, ignored);
  });
  static_cast<void>(removed);
  benchmark::RegisterBenchmark(name.c_str(),
                               [=](benchmark::State& state) {
                                 static unsigned seed = 12345;
                                 for (auto _ : state) {
                                   seed = seed * 1664525u + 1013904223u;
                                   const std::string cache = root + "/" + std::to_string(seed);
                                   std::filesystem::create_directories(cache);
                                   std::filesystem::permissions(cache,
                                                                std::filesystem::perms::owner_all);
                                   if (cached) timed_apart(mode, seed, cache);
                                   const double ms = timed_apart(mode, seed, cache);
                                   if (ms < 0) state.SkipWithError("the child failed");
                                   state.SetIterationTime(ms * 1e-3);
                                 }
                               })
      ->UseManualTime()
      ->Iterations(5);
}

}  // namespace perf
