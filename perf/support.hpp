// What the benchmarks share: registering a row by name, and data that is the same in every run.
#pragma once

#include <benchmark/benchmark.h>

#include <string>
#include <utility>
#include <vector>

#include <vt/vt.hpp>

namespace perf {

/// Registers `body` as the row `name`; `work` units of `unit` are done per call (flops, bytes, elements).
template <class F>
void row(const std::string& name, F body, double work = 0, const char* unit = "") {
  benchmark::RegisterBenchmark(name.c_str(),
                               [body, work, unit](benchmark::State& state) mutable {
                                 body();
                                 for (auto _ : state) body();
                                 if (work > 0) state.counters[unit] = benchmark::Counter(work * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
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

/// Numbers between −1 and 1 from a fixed generator.
template <class T>
std::vector<T> numbers(std::size_t n, std::uint64_t seed = 1) {
  std::vector<T> values(n);
  for (T& v : values) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    v = static_cast<T>(static_cast<double>(seed >> 11) * 0x1p-52 - 1.0);
  }
  return values;
}
template <class T>
vt::Tensor random_tensor(const vt::Shape& shape, std::uint64_t seed = 1) {
  return vt::tensor(numbers<T>(static_cast<std::size_t>(shape.elements()), seed), shape).eval();
}

}  // namespace perf
