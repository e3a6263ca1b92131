// Loops and branches in which every lane decides for itself, with more than fits in registers: on
// the device under masks, as a loop over the lanes.
#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include <vt/vt.hpp>

#include "src/jit/cuda/driver/cuda_library.hpp"
#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::all_close;

const vt_test::Emulator* const emulator = [] {
  // what is steered otherwise (cuda_loops_test.cpp has the kernels)
  ::setenv("VT_CUDA_LOOPS", "0", 1);
  return vt_test::use_cuda_emulator();
}();
const vt::Device device = vt::cuda(0);
const vt_test::Tolerance rounding{.relative = 1e-5, .absolute = 1e-5};

Tensor numbers(const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(vt::f32, shape, -1, 1, seed);
}
bool has_conditions() { return vt::detail::cuda::driver(nullptr)->cuGraphAddNode_v2 != nullptr; }

// A recurrent cell on sequences of different lengths, as one writes it for a single one: whole
// states of those that end earlier stay.
Tensor last_state(const Tensor& a, const Tensor& xs, const Tensor& length) {
  return std::get<0>(vt::while_loop(
      [&](Tensor, Tensor t) { return t < length; },
      [&](Tensor h, Tensor t) { return std::tuple(vt::tanh(vt::matmul(a, h) + xs[t]), t + 1); },
      std::tuple(vt::zeros({40}), vt::tensor(0))));
}

TEST(CudaLanes, ALoopOfRaggedLengthsNeverWaits) {
  const auto all = [](Tensor a, Tensor xs, Tensor lengths) {
    return vt::vmap([&](Tensor x, Tensor n) { return last_state(a, x, n); })(xs, lengths);
  };
  const Tensor a = numbers({40, 40}, 1) * 0.3f, xs = numbers({5, 7, 40}, 2),
               lengths = vt::tensor({3, 7, 0, 1, 5});
  const Tensor expected = all(a, xs, lengths);
  for (int lane = 0; lane < 5; ++lane)
    EXPECT_TRUE(all_close(expected[lane], last_state(a, xs[lane], lengths[lane]), rounding))
        << lane;
  const auto f = vt::jit(all);
  const Tensor da = a.to(device), dxs = xs.to(device), dl = lengths.to(device);
  f(da, dxs, dl).eval();
  vt::reset_stats();
  const auto waits = emulator ? emulator->count("synchronisations") : 0;
  const Tensor result = f(da, dxs, dl).eval();
  EXPECT_EQ(vt::stats().host_steps, 0u) << vt::explain_steps(f)(da, dxs, dl);
  if (has_conditions()) {
    EXPECT_EQ(vt::stats().graph_launches, 1u);
  }
  if (emulator && has_conditions()) {
    EXPECT_EQ(emulator->count("synchronisations"), waits);
  }
  EXPECT_TRUE(all_close(result, expected, rounding));
  // The longest is known only when it runs; none at all.
  const Tensor others = vt::tensor({0, 0, 0, 0, 0});
  EXPECT_TRUE(all_close(f(da, dxs, others.to(device)), vt::zeros({5, 40}), {}));
}

// Halves until it is small: for ever, of what its caller keeps away from it.
Tensor halved(const Tensor& x) {
  return vt::while_loop([](Tensor y) { return vt::logical_not(vt::sum(y) < 1.0f); },
                        [](Tensor y) { return y * 0.5f; }, x);
}

TEST(CudaLanes, StatesThatAConditionRefusedAreNotSeen) {
  // Sums that are NaN or infinite would never be small.
  const auto outer = [](Tensor x) {
    return std::get<0>(vt::while_loop(
        [](Tensor y, Tensor n) { return vt::logical_and(vt::isfinite(vt::sum(y)), n < 4); },
        [](Tensor y, Tensor n) {
          return std::tuple(halved(y) * vt::where(n == 1, y, 2.0f), n + 1);
        },
        std::tuple(x, vt::tensor(0))));
  };
  const auto all = [&](Tensor xs) { return vt::vmap(outer)(xs); };
  Tensor xs = vt::abs(numbers({4, 40}, 1));
  xs = vt::concatenate({xs, vt::full({1, 40}, std::numeric_limits<float>::infinity()),
                        vt::full({1, 40}, std::nanf(""))},
                       0);
  const auto f = vt::jit(all);
  vt::reset_stats();
  EXPECT_TRUE(all_close(f(xs.to(device)), all(xs), rounding));
  EXPECT_EQ(vt::stats().host_steps, 0u) << vt::explain_steps(f)(xs.to(device));
}

TEST(CudaLanes, BranchesOfEachLane) {
  const auto choose = [](Tensor a, Tensor shared, Tensor which, Tensor x) {
    return vt::switch_(
        which,
        std::tuple([&](Tensor y) { return std::tuple(vt::matmul(a, y), vt::sum(y)); },
                   [&](Tensor y) { return std::tuple(y * 2.0f + shared, vt::tensor(1.0f)); },
                   [](Tensor y) { return std::tuple(halved(vt::abs(y)), vt::max(y)); }),
        x);
  };
  const auto all = [&](Tensor a, Tensor shared, Tensor which, Tensor xs) {
    return vt::vmap([&](Tensor w, Tensor x) { return choose(a, shared, w, x); })(which, xs);
  };
  const Tensor a = numbers({40, 40}, 1), shared = numbers({40}, 2), xs = numbers({6, 40}, 3);
  const auto f = vt::jit(all);
  for (const Tensor& which : {vt::tensor({0, 1, 2, 0, -5, 9}), vt::tensor({1, 1, 1, 1, 1, 1}),
                              vt::tensor({2, 2, 0, 0, 2, 0})}) {
    vt::reset_stats();
    const auto [y, s] = f(a.to(device), shared.to(device), which.to(device), xs.to(device));
    EXPECT_EQ(vt::stats().host_steps, 0u);
    const auto [expected_y, expected_s] = all(a, shared, which, xs);
    EXPECT_TRUE(all_close(y, expected_y, rounding));
    EXPECT_TRUE(all_close(s, expected_s, rounding));
  }
}

// cholesky, lu, solve and triangular_solve of a lane are part of its loop's kernel.
TEST(CudaLanes, SmallSystemsAreInTheLoopsKernel) {
  const auto lane = [](Tensor a, Tensor b, Tensor n) {
    return vt::while_loop(
               [&](Tensor i, Tensor) { return i < n; },
               [&](Tensor i, Tensor x) {
                 const Tensor spd = vt::matmul(a, vt::transpose(a)) + vt::eye(4, a.dtype()),
                              l = vt::linalg::cholesky(spd);
                 const auto [y, pull] =
                     vt::vjp([&](const Tensor& v) { return vt::linalg::solve(a, v); }, x);
                 const Tensor z = vt::linalg::solve_triangular(l, b, 0, true);
                 return std::pair<Tensor, Tensor>(
                     i + 1, vt::tanh(y + pull(b)) + vt::linalg::solve_triangular(l, z, 1, true));
               },
               std::pair<Tensor, Tensor>(0, b))
        .second;
  };
  const auto all = [&](Tensor a, Tensor b, Tensor n) { return vt::vmap(lane)(a, b, n); };
  const Tensor a = numbers({40, 4, 4}, 1) + 3.0f * vt::eye(4), b = numbers({40, 4}, 2),
               n = (vt::arange(40) % 5).eval();
  const auto f = vt::jit(all);
  const Tensor da = a.to(device), db = b.to(device), dn = n.to(device);
  EXPECT_TRUE(all_close(f(da, db, dn), all(a, b, n), {.relative = 1e-4, .absolute = 1e-4}));
  const std::string text = f.explain(da, db, dn);
  EXPECT_NE(text.find(": 1 kernels"), std::string::npos) << text;
}

TEST(CudaLanes, EffectsStayWithTheHost) {
  const auto counted = [](Tensor x) {
    return vt::while_loop([](Tensor y) { return vt::sum(y * y) > 1.0f; },
                          [](Tensor y) {
                            vt::check(vt::sum(y) < 1e6f, "too large");
                            return y * 0.5f;
                          },
                          x);
  };
  const auto all = [&](Tensor xs) { return vt::vmap(counted)(xs); };
  const Tensor xs = numbers({3, 40}, 1);
  EXPECT_TRUE(all_close(vt::jit(all)(xs.to(device)), all(xs), rounding));
}

}  // namespace
