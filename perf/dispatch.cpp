// What happens before and around kernels: recording and transforming, calling a small compiled
// function, first calls, memory.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>
#include <vector>

#include "../src/trace/base/buffer.hpp"
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
  perf::row(
      "record/1000", [=] { benchmark::DoNotOptimize(vt::make_graph(scalar)(x)); }, 1000, "Gop/s");
  perf::row(
      "record/1000/vmap_grad",
      [=] { benchmark::DoNotOptimize(vt::make_graph(vt::vmap(vt::grad(scalar)))(batch)); }, 1000,
      "Gop/s");
}

/// A layer of a recurrent network as a named function: x, h, c, weights of x and h, offsets.
auto recurrent_cell(int size) {
  return vt::function("lstm_cell", [size](vt::Tensor x, vt::Tensor h, vt::Tensor c, vt::Tensor w,
                                          vt::Tensor u, vt::Tensor b) {
    const vt::Tensor z = vt::matmul(w, x) + vt::matmul(u, h) + b;
    const auto gate = [&](int k) { return z[vt::slice(k * size, (k + 1) * size)]; };
    c = vt::sigmoid(gate(0)) * c + vt::sigmoid(gate(1)) * vt::tanh(gate(2));
    return std::pair(vt::sigmoid(gate(3)) * vt::tanh(c), c);
  });
}

void named_calls() {
  constexpr int size = 8, chains = 64;
  const vt::Tensor w = vt::ones({4 * size, size}), b = vt::ones({4 * size}), x = vt::ones({size});
  const auto cell = recurrent_cell(size);
  /// `count` calls in chains, their last results added up.
  const auto chained = [=](int count) {
    return [=](vt::Tensor w, vt::Tensor u, vt::Tensor b) {
      vt::Tensor sum = vt::tensor(0.0f);
      for (int k = 0; k < chains; ++k) {
        std::pair<vt::Tensor, vt::Tensor> s(x, x);
        for (int i = 0; i < count / chains; ++i) s = cell(x, s.first, s.second, w, u, b);
        sum = sum + vt::sum(s.first);
      }
      return sum;
    };
  };
  perf::row(
      "record/calls/9000",
      [=] { benchmark::DoNotOptimize(vt::make_graph(chained(9000))(w, w, b)); }, 9000, "Gcall/s");
  perf::row(
      "record/calls/9000/grad",
      [=] { benchmark::DoNotOptimize(vt::make_graph(vt::grad<0, 1, 2>(chained(9000)))(w, w, b)); },
      9000, "Gcall/s");
}

void calls() {
  const vt::Tensor x = vt::arange(10).astype(vt::f32).eval(), y = vt::ones({10}).eval();
  const auto f = vt::jit([](vt::Tensor x, vt::Tensor y) { return vt::sin(x) * y + 1.0f; });
  perf::row_on(2, "call/10/vt", [=] { f(x, y).eval(); });
}

/// A network of two layers for batches of sizes that come up for the first time, but for the first
/// few; and of one size.
void batch_sizes() {
  const auto random = [](std::uint64_t key, const vt::Shape& shape) {
    return vt::random::normal(vt::random::key(key), shape, vt::f32).eval();
  };
  const vt::Tensor w = random(1, {64, 256}), b = random(2, {256}), v = random(3, {256, 10});
  const auto network = [=](const vt::Tensor& x) {
    return vt::softmax(vt::matmul(vt::relu(vt::matmul(x, w) + b), v), -1);
  };
  const auto fast = vt::jit(network, {.programs = 8});  // others are forgotten, and new once more
  std::vector<vt::Tensor> batches;
  for (int size = 64; size < 96; ++size) batches.push_back(random(4, {size, 64}));
  perf::row("batch_size/new", [=, next = std::size_t{0}]() mutable {
    fast(batches[next]).eval();
    next = (next + 1) % batches.size();
  });
  perf::row("batch_size/known", [=] { fast(batches[16]).eval(); });
}

/// The first call of function `seed`, which then is in no memory; with "--first-call" after another
/// function was compiled, with "--first-compile" as the first thing the process does.
int time_first_call(unsigned seed, bool after_another) {
  // With an empty cache another function is compiled first, so that libLLVM is loaded: that happens
  // once in a process.
  if (after_another)
    vt::jit([](vt::Tensor x) { return vt::sqrt(x) - 2.0f; })(vt::ones({100})).eval();
  const vt::Tensor x = vt::ones({100}).eval();
  const auto start = std::chrono::steady_clock::now();
  vt::jit([seed](vt::Tensor x) { return long_function(x, 20, seed); })(x).eval();
  std::printf(
      "%.6f\n",
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
  return 0;
}

void first_calls() {
  perf::first_call_row("first_call/20_ops/cold", "--first-call", false);
  perf::first_call_row("first_call/20_ops/disk", "--first-call", true);
  perf::first_call_row("first_call/20_ops/first_of_process", "--first-compile", false);
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

/// Another program that has a processor half of the time: half a millisecond, then a pause as long.
class Neighbour {
 public:
  Neighbour() : pid_(::fork()) {
    using Clock = std::chrono::steady_clock;
    for (constexpr auto half = std::chrono::microseconds(500); pid_ == 0;) {
      for (const auto until = Clock::now() + half; Clock::now() < until;) {
      }
      std::this_thread::sleep_for(half);
    }
  }
  ~Neighbour() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;

 private:
  pid_t pid_;
};

/// A kernel of some 200 us on one thread beside it: the median of 1,000 calls, and how long the
/// slowest twentieth takes at least.
void beside_a_neighbour() {
  for (const int threads : {1, 2})
    benchmark::RegisterBenchmark(
        ("neighbour/threads:" + std::to_string(threads)).c_str(),
        [threads](benchmark::State& state) {
          const int before = vt::num_threads();
          vt::set_num_threads(threads);
          const vt::Tensor x = vt::linspace(0.0, 1.0, 100000).eval();
          const auto f =
              vt::jit([](vt::Tensor x) { return vt::sin(x) * vt::exp(-x * x) + vt::tanh(x); });
          vt::Tensor result = f(x).eval();
          vt::wait_compiled();
          const Neighbour neighbour;
          std::vector<double> times;
          for (auto _ : state) {
            const auto begin = std::chrono::steady_clock::now();
            f.into(result)(x);
            times.push_back(
                std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
          }
          std::sort(times.begin(), times.end());
          state.counters["median_us"] = times[times.size() / 2] * 1e6;
          state.counters["p95_us"] = times[times.size() * 95 / 100] * 1e6;
          vt::set_num_threads(before);
        })
        ->Iterations(1000)
        ->UseRealTime();
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string mode = argc == 3 ? argv[1] : "";
      mode == "--first-call" || mode == "--first-compile")
    return time_first_call(static_cast<unsigned>(std::atoll(argv[2])), mode == "--first-call");
  recording();
  named_calls();
  calls();
  batch_sizes();
  first_calls();
  memory();
  beside_a_neighbour();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
