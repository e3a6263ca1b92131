// What vmap leaves of functions of small matrices, on the device: one kernel with a thread for each
// lane, against the host's interpreter.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using In = std::span<const Tensor>;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();
const vt::Device device = vt::cuda(0);

Tensor numbers(vt::DType d, const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}

/// Where the tip of an arm is, by the angles of its joints.
Tensor tip(const Tensor& angles) {
  const auto joint = [](const Tensor& q, double reach) {
    const Tensor c = vt::cos(q), s = vt::sin(q), zero = vt::zeros_like(q), one = vt::ones_like(q);
    return vt::reshape(vt::stack({c, -s * 0.6, s * 0.8, c * reach, s, c * 0.6, -c * 0.8, s * reach,
                                  zero, one * 0.8, one * 0.6, one * 0.1, zero, zero, zero, one}),
                       {4, 4});
  };
  Tensor m = joint(angles[0], 0.3);
  for (std::int64_t i = 1; i < angles.dim(0); ++i)
    m = vt::matmul(m, joint(angles[i], 0.2 + 0.1 * static_cast<double>(i)));
  return vt::reshape(vt::slice(m, {0, 3}, {3, 4}), {3});
}

/// The same on the device as on the host, in so many kernels.
void expect_kernels(std::uint64_t kernels, const vt::detail::FlatFunction& f,
                    const Tensors& arguments, const vt_test::Tolerance& tolerance,
                    const std::string& what) {
  SCOPED_TRACE(what);
  const auto run = [&](const Tensors& a) { return f(In(a)); };
  const auto compiled = vt::jit(run);
  Tensors there;
  for (const Tensor& a : arguments) there.push_back(a.to(device));
  vt::reset_stats();
  const Tensors made = compiled(there), expected = run(arguments);
  for (const Tensor& t : made) t.eval();
  EXPECT_EQ(vt::stats().launches, kernels) << vt::explain_steps(compiled)(there);
  EXPECT_EQ(vt::stats().host_steps, 0u);
  for (std::size_t i = 0; i < made.size(); ++i)
    EXPECT_TRUE(vt_test::all_close(made[i].to(vt::cpu()), expected[i], tolerance)) << i;
}

const vt_test::Tolerance close{.relative = 1e-12, .absolute = 1e-12},
    close_f32{.relative = 2e-5, .absolute = 2e-5};

// Lanes: fewer than a warp has, some warps, and so many that rows of memory go through tiles, the
// last of them cut.
TEST(CudaRegions, DerivativesOfAChainAreOneKernel) {
  for (const vt::DType d : {vt::f32, vt::f64})
    for (const int lanes : {9, 300, 1100}) {
      const Tensors arms = {numbers(d, {lanes, 6}, 1)};
      const vt_test::Tolerance& tolerance = d == vt::f64 ? close : close_f32;
      const std::string what = std::to_string(lanes) + " lanes";
      expect_kernels(
          1, [](In a) -> Tensors { return {vt::vmap(tip)(a[0])}; }, arms, tolerance, what);
      expect_kernels(
          1, [](In a) -> Tensors { return {vt::vmap(vt::jacrev(tip))(a[0])}; }, arms, tolerance,
          "jacrev, " + what);
      if (lanes >= 256)
        expect_kernels(
            1, [](In a) -> Tensors { return {vt::vmap(vt::jacfwd(tip))(a[0])}; }, arms, tolerance,
            "jacfwd, " + what);
    }
}

// A step of a filter: matrices that all lanes share, and several results.
TEST(CudaRegions, AFilterIsOneKernel) {
  const auto step = [](In a) -> Tensors {
    const auto one = [f = a[3], q = a[4], h = a[5], r = a[6]](const Tensor& x, const Tensor& p,
                                                              const Tensor& z) {
      const Tensor ahead = vt::matmul(f, x),
                   spread = vt::matmul(vt::matmul(f, p), vt::transpose(f)) + q;
      const Tensor s = vt::matmul(vt::matmul(h, spread), vt::transpose(h)) + r;
      const Tensor inverse =
          vt::reshape(vt::stack({s[1][1], -s[0][1], -s[1][0], s[0][0]}), {2, 2}) /
          (s[0][0] * s[1][1] - s[0][1] * s[1][0]);
      const Tensor gain = vt::matmul(vt::matmul(spread, vt::transpose(h)), inverse);
      return std::pair(ahead + vt::matmul(gain, z - vt::matmul(h, ahead)),
                       vt::matmul(vt::eye(4, p.dtype()) - vt::matmul(gain, h), spread));
    };
    const auto [x, p] = vt::vmap(one)(a[0], a[1], a[2]);
    return {x, p};
  };
  for (const int lanes : {70, 1030})
    expect_kernels(1, step,
                   {numbers(vt::f64, {lanes, 4}, 1),
                    numbers(vt::f64, {lanes, 4, 4}, 2) * 0.1 + vt::eye(4, vt::f64),
                    numbers(vt::f64, {lanes, 2}, 3), numbers(vt::f64, {4, 4}, 4),
                    vt::eye(4, vt::f64), numbers(vt::f64, {2, 4}, 5), vt::eye(2, vt::f64) * 4.0},
                   {.relative = 1e-9, .absolute = 1e-9}, std::to_string(lanes) + " lanes");
}

// Lanes that are not in front are brought there by a kernel before and taken back by one behind;
// loops and branches of each lane are inside; elements of one and two bytes go through tiles as
// well.
TEST(CudaRegions, LayoutsBranchesAndNarrowTypes) {
  const auto along_one = [](In a) -> Tensors {
    return {vt::vmap(vt::jacrev(tip), {.in_axes = 1, .out_axes = 1})(a[0])};
  };
  expect_kernels(3, along_one, {numbers(vt::f32, {6, 40}, 1)}, close_f32, "axis 1");
  const auto branches = [](In a) -> Tensors {
    const auto one = [](const Tensor& m, const Tensor& x) {
      const Tensor far =
          vt::while_loop([](Tensor y) { return vt::dot(y, y) < 9.0; },
                         [&](Tensor y) { return y * 1.5 + 0.1 * vt::matmul(m, y) + 0.2; }, x);
      return vt::cond(
          far[0] > 0.0, [&] { return vt::matmul(m, far) * x[0]; },
          [&] { return vt::sin(far) + x; });
    };
    return {vt::vmap(one)(a[0], a[1])};
  };
  for (const int lanes : {50, 1090})
    expect_kernels(1, branches,
                   {vt_test::random_tensor(vt::f64, {lanes, 3, 3}, 0, 1, 1),
                    vt_test::random_tensor(vt::f64, {lanes, 3}, 0.1, 1, 2)},
                   close, "a loop and a branch, " + std::to_string(lanes) + " lanes");
  const auto narrow = [](In a) -> Tensors {
    const auto one = [](const Tensor& x, const Tensor& chosen) {
      const Tensor y = vt::matmul(vt::matmul(x, x), vt::where(chosen, x, 0.5f));
      return std::pair(y.astype(vt::f16), y > 0.0f);
    };
    const auto [y, positive] = vt::vmap(one)(a[0], a[1]);
    return {y.astype(vt::f32), positive};
  };
  expect_kernels(1, narrow,
                 {numbers(vt::f32, {1100, 5, 5}, 1), numbers(vt::f32, {1100, 5, 5}, 2) > 0.0f},
                 {.relative = 2e-3, .absolute = 2e-3}, "narrow");
}

}  // namespace
