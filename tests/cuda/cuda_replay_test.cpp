// Programs replayed as CUDA graphs: one launch, fresh results, loops and branches on the device,
// threads, faults, nothing leaked.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <thread>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/driver/cuda_library.hpp"
#include "src/jit/cuda/program/compile.hpp"
#include "src/trace/ir/executable.hpp"
#include "src/trace/record/node.hpp"
#include "src/trace/record/scope.hpp"
#include "support/cuda_emulator.hpp"
#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using vt_test::all_close;
using vt_test::message;

const vt_test::Emulator* const emulator = [] {
  // what is steered otherwise (cuda_loops_test.cpp has the kernels)
  ::setenv("VT_CUDA_LOOPS", "0", 1);
  return vt_test::use_cuda_emulator();
}();
const vt::Device device = vt::cuda(0);

// Rows and columns are summed in turn, so that no two steps fuse.
Tensor many_kernels(const Tensor& x) {
  Tensor y = x;
  for (int i = 0; i < 5; ++i)
    y = y - vt::tanh(vt::sum(y, 0) * 0.1f) + vt::reshape(vt::sum(y, 1), {y.shape()[0], 1}) * 0.01f;
  return y;
}

Tensor numbers(const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(vt::f32, shape, -1, 1, seed);
}
const vt_test::Tolerance rounding{.relative = 1e-5, .absolute = 1e-5};

bool has_conditions() { return cuda::driver(nullptr)->cuGraphAddNode_v2 != nullptr; }

std::uint64_t graph_launches(auto run) {
  vt::reset_stats();
  run();
  return vt::stats().graph_launches;
}

TEST(CudaReplay, AProgramThatRunsAgainIsOneLaunch) {
  const auto f = vt::jit(many_kernels);
  const Tensor x = numbers({6, 5}, 1), there = x.to(device);
  const Tensor first = f(there);
  EXPECT_EQ(graph_launches([&] { f(there).eval(); }), 1u) << vt::explain_steps(f)(there);
  EXPECT_NE(vt::explain_steps(f)(there).find("replayed as one CUDA graph"), std::string::npos);
  const auto launches = emulator ? emulator->count("cuLaunchKernel") : 0;
  const Tensor second = f(there);
  EXPECT_TRUE(all_close(second, many_kernels(x), rounding));
  if (emulator) {
    EXPECT_EQ(emulator->count("cuLaunchKernel"), launches);
  }
  EXPECT_TRUE(all_close(first, second, {}));
}

TEST(CudaReplay, ResultsAreTheCallers) {
  const auto f = vt::jit(many_kernels);
  std::vector<Tensor> arguments, results;
  for (std::uint64_t i = 0; i < 5; ++i) {  // all live at once, so each call has other addresses
    arguments.push_back(numbers({4, 7}, i));
    results.push_back(f(arguments.back().to(device)));
  }
  for (std::size_t i = 0; i < 5; ++i)
    EXPECT_TRUE(all_close(results[i], many_kernels(arguments[i]), rounding)) << i;
}

TEST(CudaReplay, AResultThatIsAnArgumentOrTwice) {
  const auto f = vt::jit([](Tensor x) {
    const Tensor y = many_kernels(x);
    return std::tuple(y, x, y, vt::arange(4));
  });
  const Tensor x = numbers({3, 4}, 2), there = x.to(device);
  f(there);
  const auto [y, same, twice, numbers] = f(there);
  EXPECT_TRUE(all_close(y, many_kernels(x), rounding));
  EXPECT_TRUE(all_close(same, x, {}));
  EXPECT_TRUE(all_close(twice, y, {}));
  EXPECT_EQ(numbers.to_vector<std::int64_t>(), (std::vector<std::int64_t>{0, 1, 2, 3}));
}

TEST(CudaReplay, SharedScratchGrows) {
  const auto small = vt::jit([](Tensor x) { return many_kernels(x); });
  const auto large = vt::jit([](Tensor x) { return many_kernels(x * 2.0f); });
  const Tensor x = numbers({5, 3}, 1), y = vt_test::random_tensor(vt::f64, {400, 500}, -1, 1, 2);
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(all_close(small(x.to(device)), many_kernels(x), rounding));
    EXPECT_TRUE(all_close(large(y.to(device)), many_kernels(y * 2.0f), rounding));
  }
}

// --- loops and branches

Tensor recurrence(const Tensor& a, const Tensor& xs, int reverse) {
  auto [last, states] = vt::scan(
      [&](Tensor h, Tensor x) {
        const Tensor next = vt::tanh(vt::matmul(a, h) + x);
        return std::pair(next, vt::sum(next * next) + next);
      },
      xs[0], xs, {.reverse = reverse != 0});
  return vt::concatenate({vt::reshape(last, {1, 40}), states}, 0);
}

TEST(CudaReplay, LoopsOfKnownLengthAreUnrolled) {
  const Tensor a = numbers({40, 40}, 1) * 0.2f, xs = numbers({6, 40}, 2), ys = numbers({6, 40}, 3);
  for (int reverse : {0, 1}) {
    const auto f = vt::jit([=](Tensor a, Tensor xs) { return recurrence(a, xs, reverse); });
    f(a.to(device), xs.to(device)).eval();
    EXPECT_EQ(graph_launches([&] {
                EXPECT_TRUE(all_close(f(a.to(device), xs.to(device)), recurrence(a, xs, reverse),
                                      rounding));
              }),
              1u);
    EXPECT_TRUE(all_close(f(a.to(device), ys.to(device)), recurrence(a, ys, reverse), rounding));
  }
}

Tensor collatz_like(const Tensor& a, const Tensor& x, const Tensor& limit) {
  return vt::while_loop([&](Tensor y) { return vt::sum(y * y) > limit; },
                        [&](Tensor y) { return vt::tanh(vt::matmul(a, y)) * 0.9f; }, x);
}

TEST(CudaReplay, LoopsThatTheDeviceSteers) {
  const Tensor a = numbers({40, 40}, 1) * 0.3f, x = numbers({40}, 2), limit = vt::tensor(0.05f);
  const auto f = vt::jit(collatz_like);
  for (std::uint64_t seed : {0, 1, 7}) {
    if (emulator) emulator->set_seed(seed);
    const Tensor da = a.to(device), dx = (x * static_cast<float>(seed + 1)).to(device),
                 dl = limit.to(device);
    const auto waits = emulator ? emulator->count("synchronisations") : 0;
    Tensor result;
    EXPECT_EQ(graph_launches([&] { result = f(da, dx, dl); }), has_conditions() ? 1u : 0u);
    if (emulator && has_conditions()) {
      EXPECT_EQ(emulator->count("synchronisations"), waits);
    }
    EXPECT_TRUE(
        all_close(result, collatz_like(a, x * static_cast<float>(seed + 1), limit), rounding))
        << seed;
  }
  // None of its iterations.
  EXPECT_TRUE(all_close(f(a.to(device), x.to(device), vt::tensor(1e9f).to(device)), x, {}));
  if (emulator) emulator->set_seed(0);
}

Tensor choose(const Tensor& which, const Tensor& a, const Tensor& x) {
  return vt::switch_(which,
                     std::tuple([&](Tensor y) { return vt::matmul(a, y); },
                                [&](Tensor y) { return vt::matmul(a, vt::matmul(a, y)); },
                                [](Tensor y) { return y; }),
                     x);
}

TEST(CudaReplay, BranchesThatTheDeviceChooses) {
  const Tensor a = numbers({40, 40}, 1), x = numbers({40}, 2);
  const auto f = vt::jit(choose);
  for (int which : {0, 1, 2, 1, -3, 9}) {
    const Tensor w = vt::tensor(which).astype(vt::i32);
    Tensor result;
    EXPECT_EQ(graph_launches([&] { result = f(w.to(device), a.to(device), x.to(device)); }),
              has_conditions() ? 1u : 0u);
    EXPECT_TRUE(all_close(result, choose(w, a, x), rounding)) << which;
  }
}

// A loop in a branch in a loop, and one whose operand is too large to be copied for each run.
TEST(CudaReplay, NestedConditions) {
  const auto f = [](Tensor table, Tensor x) {
    return vt::while_loop([](Tensor y, Tensor n) { return vt::sum(y * 0.0f + n) < 200.0f; },
                          [&](Tensor y, Tensor n) {
                            const Tensor more = vt::cond(
                                vt::sum(y) > 0.0f,
                                [](Tensor y) {
                                  return vt::while_loop([](Tensor z) { return vt::sum(z) > 1.0f; },
                                                        [](Tensor z) { return z * 0.5f; }, y);
                                },
                                [](Tensor y) { return y + 1.0f; }, y);
                            return std::tuple(more - table[vt::slice(0, 40)] * 0.125f, n + 1.0f);
                          },
                          std::tuple(x, vt::tensor(0.0f)));
  };
  const Tensor table =
      vt::concatenate({numbers({40}, 1), vt::zeros({std::int64_t{5} << 20})}, 0).eval();
  const Tensor x = numbers({40}, 2), y = numbers({40}, 3);
  const auto jitted = vt::jit(f);
  const Tensor first = table.to(device), second = (table * 2.0f).to(device);
  for (const Tensor& t : {first, second, first})
    for (const Tensor& start : {x, y})
      EXPECT_TRUE(all_close(std::get<0>(jitted(t, start.to(device))),
                            std::get<0>(f(t.to(vt::cpu()), start)), rounding));
}

TEST(CudaReplay, ThreadsShareAFunction) {
  const auto f = vt::jit(many_kernels);
  const auto loop = vt::jit(collatz_like);
  const Tensor a = numbers({40, 40}, 1) * 0.3f, limit = vt::tensor(0.05f);
  f(numbers({6, 5}, 0).to(device)).eval();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (std::uint64_t i = 0; i < 6; ++i) {
        const Tensor x = numbers({6, 5}, 10 * t + i), y = numbers({40}, 100 * t + i);
        const Tensor here = f(x.to(device)),
                     there = loop(a.to(device), y.to(device), limit.to(device));
        wrong[t] += !all_close(here, many_kernels(x), rounding) ||
                    !all_close(there, collatz_like(a, y, limit), rounding);
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::vector<int>(4, 0)));
}

// --- faults

TEST(CudaReplay, WithoutAGraphKernelsRunOneByOne) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  const Tensor x = numbers({6, 5}, 1), there = x.to(device), other = (x * 2.0f).to(device);
  for (const char* call : {"cuGraphCreate", "cuGraphAddKernelNode_v2",
                           "cuGraphInstantiateWithFlags", "cuGraphExecKernelNodeSetParams_v2"}) {
    const auto graphs = emulator->count("graphs"), execs = emulator->count("graph_execs");
    const auto f = vt::jit([](Tensor x) { return many_kernels(x); });
    f(there).eval();
    const std::string name = call;
    if (name == "cuGraphExecKernelNodeSetParams_v2") f(there).eval();
    emulator->fail(call, 0, cuda::Constant::CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_TRUE(all_close(f(other), many_kernels(x * 2.0f), rounding)) << call;
    emulator->reset();
    EXPECT_EQ(graph_launches(
                  [&] { EXPECT_TRUE(all_close(f(there), many_kernels(x), rounding)) << call; }),
              0u);
    EXPECT_EQ(emulator->count("graphs"), graphs) << call;
    EXPECT_EQ(emulator->count("graph_execs"), execs) << call;
  }
  EXPECT_NE(vt::warnings().find("no CUDA graph could be made"), std::string::npos)
      << vt::warnings();
}

TEST(CudaReplay, ALaunchThatFails) {
  if (!emulator) GTEST_SKIP() << "only the emulator fails on demand";
  const auto f = vt::jit([](Tensor x) { return many_kernels(x); });
  const Tensor x = numbers({6, 5}, 1), there = x.to(device);
  f(there).eval();
  f(there).eval();
  emulator->fail("cuGraphLaunch", 0, cuda::Constant::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  const std::string text = message([&] { f(there).eval(); });
  EXPECT_NE(text.find("cuGraphLaunch: CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"), std::string::npos)
      << text;
  emulator->fail("cuMemAllocAsync", 0, cuda::Constant::CUDA_ERROR_OUT_OF_MEMORY);
  EXPECT_NE(message([&] { f(there).eval(); }).find("a result of 120 bytes does not fit"),
            std::string::npos);
  emulator->reset();
  EXPECT_TRUE(all_close(f(there), many_kernels(x), rounding));
}

TEST(CudaReplay, NothingIsLeaked) {
  if (!emulator) GTEST_SKIP() << "only the emulator counts";
  const Tensor x = numbers({6, 5}, 1).to(device);
  many_kernels(x).to_vector<float>();
  const auto graphs = emulator->count("graphs"), execs = emulator->count("graph_execs");
  vt::Vec<BufferRef> inputs;
  inputs.push_back(value_of(x, {}));
  const Recorded recorded =
      record([](std::span<const Tensor> a) { return std::vector<Tensor>{many_kernels(a[0])}; },
             std::vector<Aval>{aval_of(x)}, {});
  const auto program = compile_graph(recorded.graph, device);
  const auto before = emulator->count("allocations");
  for (int i = 0; i < 4; ++i) program->run(inputs);
  EXPECT_EQ(emulator->count("graphs"), graphs + 1);
  EXPECT_EQ(emulator->count("graph_execs"), execs + 1);
  cuda::driver(nullptr)->cuCtxSynchronize();
  EXPECT_EQ(emulator->count("allocations"), before);
}

// Results lie over what was donated: nothing is allocated for them, whether kernels run one by one
// or as a graph.
TEST(CudaReplay, KernelsUnusedForLongAreUnloaded) {
  const Tensor a = numbers({40, 40}, 1) * 0.3f, x = numbers({40}, 2), limit = vt::tensor(0.05f);
  const Tensor da = a.to(device), dx = x.to(device), dl = limit.to(device);
  const auto loaded = [] {
    return emulator ? emulator->count("cuModuleLoadData") - emulator->count("cuModuleUnload") : 0;
  };
  cuda::set_most_kernels(1);
  const auto loop = vt::jit(collatz_like);
  for (int i = 0; i < 2; ++i)
    EXPECT_TRUE(all_close(loop(da, dx, dl), collatz_like(a, x, limit), rounding));
  const auto of_loop = loaded();
  for (int i = 1; i <= 4; ++i) {
    const auto add = [i](Tensor y) {
      for (int k = 0; k < i; ++k) y = vt::tanh(y) + 0.5f;
      return y;
    };
    EXPECT_TRUE(all_close(vt::jit(add)(dx), add(x), rounding)) << i;
  }
  if (emulator) {
    EXPECT_EQ(loaded(), of_loop + 1) << "what a program or its graph has stays";
  }
  EXPECT_TRUE(all_close(loop(da, dx * 2.0f, dl), collatz_like(a, x * 2.0f, limit), rounding));
  cuda::set_most_kernels(cuda::most_kernels);
}

TEST(CudaReplay, ResultsLieOverDonatedArguments) {
  const auto step = [](Tensor p, Tensor m, Tensor g) {
    const Tensor moment = 0.5f * m + g, total = vt::sum(vt::tanh(vt::sum(moment, 0) * 0.25f));
    return std::tuple(p - 0.1f * moment * total, moment);
  };
  const auto f = vt::jit(step, {.donate = {0, 1}});
  const Tensor g = numbers({400, 7}, 3), there = g.to(device);
  Tensor p = numbers({400, 7}, 1), m = numbers({400, 7}, 2), dp = p.to(device), dm = m.to(device);
  EXPECT_EQ(f.memory(dp, dm, there).results, 0u);
  for (int i = 0; i < 4; ++i) {
    const Tensor kept = i == 2 ? vt::jit([](Tensor t) { return t; })(dp) : Tensor(),
                 before = i == 2 ? p : Tensor();
    const auto made = emulator ? emulator->count("cuMemAllocAsync") : 0;
    std::tie(dp, dm) = f(dp, dm, there);
    // Scratch memory, and a copy of what somebody else holds.
    if (emulator && i != 1) {
      EXPECT_LE(emulator->count("cuMemAllocAsync") - made, i == 0 || i == 2 ? 1 : 0) << i;
    }
    std::tie(p, m) = step(p, m, g);
    EXPECT_TRUE(all_close(dp, p, rounding)) << i;
    EXPECT_TRUE(all_close(dm, m, rounding)) << i;
    if (i == 2) {
      EXPECT_TRUE(all_close(kept, before, rounding));
    }
  }
}

// More iterations than a graph should have nodes are a loop of it, which counts on the device.
TEST(CudaReplay, ScansOfManyIterations) {
  for (bool reverse : {false, true}) {
    const auto f = [reverse](Tensor state, Tensor xs) {
      const auto step = [](Tensor s, Tensor x) {
        const Tensor next = vt::tanh(many_kernels(s) * 0.5f + x);
        return std::pair(next, std::tuple(vt::sum(next, 0), next > 0.0f));
      };
      return vt::scan(step, state, xs, {.reverse = reverse});
    };
    const auto there = vt::jit(f);
    const Tensor state = numbers({7, 9}, 1), xs = numbers({420, 7, 9}, 2),
                 other = numbers({420, 7, 9}, 3);
    const Tensor ds = state.to(device), dx = xs.to(device), dother = other.to(device);
    for (const auto& [host, given] : {std::pair{xs, dx}, {other, dother}, {xs, dx}}) {
      const auto waits = emulator ? emulator->count("synchronisations") : 0;
      vt::reset_stats();
      const auto [last, rows] = there(ds, given);
      if (has_conditions()) {
        EXPECT_EQ(vt::stats().graph_launches, 1u);
      } else {
        // the host gives the graph of an iteration as often, but for the first time
        EXPECT_GE(vt::stats().graph_launches, 419u);
      }
      if (emulator) {
        EXPECT_EQ(emulator->count("synchronisations"), waits);
      }
      const auto [expected_last, expected_rows] = f(state, host);
      EXPECT_TRUE(all_close(last, expected_last, rounding));
      EXPECT_TRUE(all_close(std::get<0>(rows), std::get<0>(expected_rows), rounding));
      EXPECT_TRUE(all_close(std::get<1>(rows), std::get<1>(expected_rows), rounding));
    }
  }
}

}  // namespace
