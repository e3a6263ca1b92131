// Loops and branches with small bodies as one kernel: results, one launch, no word from the host;
// inner loops and branches; what stays apart.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <vt/vt.hpp>

#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::all_close;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
const vt::Device device = vt::cuda(0);
const vt_test::Tolerance rounding{.relative = 1e-5, .absolute = 1e-5};

Tensor numbers(const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(vt::f32, shape, -1, 1, seed);
}

/// f(arguments…) on the device = on the host, in whatever order threads run; its loops are one
/// kernel of one block (or not).
template <class F, class... T>
void expect(const char* what, const F& f, bool one_kernel, const T&... arguments) {
  const auto compiled = vt::jit(f);
  const Tensor expected = f(arguments...);
  for (std::uint64_t seed : {0, 1, 5}) {
    if (emulator) emulator->set_seed(seed);
    const auto waits = emulator ? emulator->count("synchronisations") : 0;
    const Tensor result = compiled(arguments.to(device)...).eval();
    if (emulator && one_kernel) {
      EXPECT_EQ(emulator->count("synchronisations"), waits) << what;
    }
    EXPECT_TRUE(all_close(result, expected, rounding)) << what << ", seed " << seed;
  }
  if (emulator) emulator->set_seed(0);
  const std::string text = vt::explain_steps(compiled)(arguments.to(device)...);
  EXPECT_EQ(text.find("one kernel of one block") != std::string::npos, one_kernel) << what << "\n"
                                                                                   << text;
}

Tensor cell(const Tensor& a, const Tensor& h, const Tensor& x) {
  return vt::tanh(vt::matmul(a, h) + x);
}

TEST(CudaLoops, ARecurrentCell) {
  const Tensor a = numbers({40, 40}, 1) * 0.2f, xs = numbers({9, 40}, 2);
  for (bool reverse : {false, true})
    expect(
        reverse ? "reverse" : "forward",
        [=](Tensor a, Tensor xs) {
          auto [last, states] = vt::scan(
              [&](Tensor h, Tensor x) {
                const Tensor next = cell(a, h, x);
                return std::pair(next, next * 2.0f);
              },
              xs[0], xs, {.reverse = reverse});
          return vt::concatenate({vt::reshape(last, {1, 40}), states}, 0);
        },
        true, a, xs);
}

TEST(CudaLoops, UntilTheDeviceHasEnough) {
  const Tensor a = numbers({40, 40}, 1) * 0.3f, x = numbers({40}, 2), limit = vt::tensor(0.05f);
  const auto f = [](Tensor a, Tensor x, Tensor limit) {
    return vt::while_loop([&](Tensor y) { return vt::sum(y * y) > limit; },
                          [&](Tensor y) { return vt::tanh(vt::matmul(a, y)) * 0.9f; }, x);
  };
  expect("some rounds", f, true, a, x, limit);
  expect("none", f, true, a, x, vt::tensor(1e9f));
}

TEST(CudaLoops, LoopsAndBranchesInside) {
  const auto f = [](Tensor a, Tensor xs) {
    auto [last, states] = vt::scan(
        [&](Tensor h, Tensor x) {
          const Tensor grown = vt::cond(
              vt::sum(h) > 0.0f, [&](Tensor y) { return cell(a, y, x); },
              [&](Tensor y) { return y - vt::matmul(a, x); }, h);
          const Tensor small = vt::while_loop([](Tensor y) { return vt::sum(vt::abs(y)) > 3.0f; },
                                              [](Tensor y) { return y * 0.5f; }, grown);
          auto [inner, parts] =
              vt::scan([&](Tensor s, Tensor e) { return std::pair(s * 0.5f + e, vt::sum(s)); },
                       small, vt::reshape(vt::tile(x, {3}), {3, 40}), {});
          return std::pair(inner, parts);
        },
        xs[0], xs, {});
    return vt::concatenate({last, vt::reshape(states, {15})}, 0);
  };
  expect("nested", f, true, numbers({40, 40}, 1) * 0.2f, numbers({5, 40}, 2));
}

// Whether a loop goes on and which branch is taken stand in memory that the next step writes: not
// before all threads have read it.
TEST(CudaLoops, WhatDecidedIsWrittenOverWhenAllHaveReadIt) {
  const auto f = [](Tensor xs) {
    return vt::scan(
               [](Tensor h, Tensor x) {
                 const Tensor halved =
                     vt::while_loop([](Tensor y) { return vt::sum(vt::abs(y)) > 3.0f; },
                                    [](Tensor y) { return y * 0.5f; }, h + x);
                 const Tensor small = vt::while_loop([](Tensor y) { return vt::max(y) > 0.5f; },
                                                     [](Tensor y) { return y * 0.25f; }, halved);
                 const Tensor grown = vt::cond(
                     vt::sum(x) > 0.0f, [](Tensor y) { return vt::cumsum(y, 0) * 0.3f; },
                     [](Tensor y) { return y - 0.5f; }, small);
                 const Tensor last = vt::while_loop([](Tensor y) { return vt::min(y) < -0.5f; },
                                                    [](Tensor y) { return y * 0.25f; }, grown);
                 return std::pair(vt::tanh(last), vt::sum(last));
               },
               xs[0], xs, {})
        .first;
  };
  expect("loops and a branch, one behind the other", f, true, numbers({5, 40}, 2));
}

TEST(CudaLoops, LanesOfRaggedLengths) {
  const auto f = [](Tensor a, Tensor xs, Tensor lengths) {
    return vt::vmap([&](Tensor xs, Tensor length) {
      return std::get<0>(
          vt::while_loop([&](Tensor, Tensor t) { return t < length; },
                         [&](Tensor h, Tensor t) { return std::tuple(cell(a, h, xs[t]), t + 1); },
                         std::tuple(vt::zeros({36}), vt::tensor(0))));
    })(xs, lengths);
  };
  expect("ragged", f, true, numbers({36, 36}, 1) * 0.3f, numbers({3, 6, 36}, 2),
         vt::tensor({2, 6, 0}));
}

TEST(CudaLoops, LongRecurrencesAreOneLaunch) {
  const Tensor xs = numbers({3000, 33}, 1);
  const auto f = [](Tensor xs) {
    return vt::scan(
               [](Tensor h, Tensor x) {
                 const Tensor n = h * 0.9f + x - vt::sum(x) * 0.01f;
                 return std::pair(n, vt::max(n));
               },
               xs[0], xs, {})
        .second;
  };
  expect("long", f, true, xs);
}

TEST(CudaLoops, LargeBodiesHaveAllOfTheDevice) {
  const Tensor a = numbers({300, 300}, 1) * 0.01f, x = numbers({300, 200}, 2);
  expect(
      "large",
      [](Tensor a, Tensor x) {
        return vt::scan(
                   [&](Tensor h, Tensor s) { return std::pair(vt::tanh(vt::matmul(a, h)) * s, s); },
                   x, vt::ones({2}), {})
            .first;
      },
      false, a, x);
}

}  // namespace
