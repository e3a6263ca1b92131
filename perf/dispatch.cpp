// What happens before and around kernels: recording and transforming, calling a small compiled function, first calls, memory.
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "../src/trace/buffer.hpp"
#include "support.hpp"

namespace {

/// `count` ops on x, all different enough that nothing merges; `seed` varies which ops they are.
vt::Tensor long_function(vt::Tensor x, int count, unsigned seed = 0) {
  for (int i = 0; i < count; ++i) {
    switch ((i + seed / (1u << (2 * (i % 12)))) % 4) {
      case 0: x = vt::sin(x); break;
      case 1: x = x * 1.5f; break;
      case 2: x = x + 0.25f; break;
      default: x = vt::tanh(x); break;
    }
  }
  return x;
}

void recording() {
  const vt::Tensor x = vt::ones({8}), batch = vt::ones({4, 8});
  const auto scalar = [](vt::Tensor x) { return vt::sum(long_function(x, 1000)); };
  perf::row("record/1000", [=] { benchmark::DoNotOptimize(vt::make_graph(scalar)(x)); }, 1000, "Gop/s");
  perf::row("record/1000/vmap_grad", [=] { benchmark::DoNotOptimize(vt::make_graph(vt::vmap(vt::grad(scalar)))(batch)); }, 1000, "Gop/s");
}

void calls() {
  const vt::Tensor x = vt::arange(10).astype(vt::f32).eval(), y = vt::ones({10}).eval();
  const auto f = vt::jit([](vt::Tensor x, vt::Tensor y) { return vt::sin(x) * y + 1.0f; });
  perf::row_on(2, "call/10/vt", [=] { f(x, y).eval(); });
}

/// Runs this program again to time the first call of function `seed`, which then is in no memory; returns milliseconds.
/// `mode`: "--first-call" after another function was compiled, "--first-compile" as the first thing the process does.
double first_call(const char* mode, unsigned seed, const std::string& cache) {
  int channel[2];
  if (pipe(channel) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    dup2(channel[1], STDOUT_FILENO);
    close(channel[0]);
    setenv("VT_CACHE_DIR", cache.c_str(), 1);
    execl("/proc/self/exe", "dispatch", mode, std::to_string(seed).c_str(), nullptr);
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

int time_first_call(unsigned seed, bool after_another) {
  // With an empty cache another function is compiled first, so that libLLVM is loaded: that happens once in a process.
  if (after_another) vt::jit([](vt::Tensor x) { return vt::sqrt(x) - 2.0f; })(vt::ones({100})).eval();
  const vt::Tensor x = vt::ones({100}).eval();
  const auto start = std::chrono::steady_clock::now();
  vt::jit([seed](vt::Tensor x) { return long_function(x, 20, seed); })(x).eval();
  std::printf("%.6f\n", std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  return 0;
}

void first_calls() {
  const std::string root = std::filesystem::temp_directory_path() / ("vt-bench-" + std::to_string(getpid()));
  std::filesystem::create_directories(root);
  std::filesystem::permissions(root, std::filesystem::perms::owner_all);
  const auto add = [root](const char* name, const char* mode, bool cached) {
    benchmark::RegisterBenchmark(name,
                                 [=](benchmark::State& state) {
                                   static unsigned seed = 12345;
                                   for (auto _ : state) {
                                     seed = seed * 1664525u + 1013904223u;
                                     const std::string cache = root + "/" + std::to_string(seed);  // empty, so that nothing is found there
                                     std::filesystem::create_directory(cache);
                                     std::filesystem::permissions(cache, std::filesystem::perms::owner_all);
                                     if (cached) first_call(mode, seed, cache);
                                     const double ms = first_call(mode, seed, cache);
                                     if (ms < 0) state.SkipWithError("the child failed");
                                     state.SetIterationTime(ms * 1e-3);
                                   }
                                 })
        ->UseManualTime()
        ->Iterations(5);
  };
  add("first_call/20_ops/cold", "--first-call", false);
  add("first_call/20_ops/disk", "--first-call", true);
  add("first_call/20_ops/first_of_process", "--first-compile", false);
  std::atexit([] {
    std::error_code ignored;
    std::filesystem::remove_all(std::filesystem::temp_directory_path() / ("vt-bench-" + std::to_string(getpid())), ignored);
  });
}

/// The most memory that a chain of 50 ops takes beyond its input and output, as a counter in KB.
void memory() {
  benchmark::RegisterBenchmark("memory/chain50/f32/4000000", [](benchmark::State& state) {
    constexpr std::int64_t n = 4'000'000;
    const vt::Tensor x = vt::full({n}, 0.5f).eval();
    const auto chain = vt::jit([](vt::Tensor x) { return long_function(x, 50); });
    chain(x).eval();
    double extra = 0;
    for (auto _ : state) {
      vt::detail::trim_pool();
      vt::detail::reset_pool_peak();
      const std::size_t before = vt::detail::pool_use().in_use;
      const vt::Tensor y = chain(x).eval();
      extra = static_cast<double>(vt::detail::pool_use().peak - before) - 4.0 * n;
    }
    state.counters["extra_KB"] = extra / 1024;
  })->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string mode = argc == 3 ? argv[1] : ""; mode == "--first-call" || mode == "--first-compile")
    return time_first_call(static_cast<unsigned>(std::atoll(argv[2])), mode == "--first-call");
  recording();
  calls();
  first_calls();
  memory();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
