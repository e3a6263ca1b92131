// Collectives where ranks have their Tensors on a CUDA device, or some of them have: through the
// host, with the same numbers.
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include <vt/distributed.hpp>
#include <vt/vt.hpp>

#include "distributed/ranks.hpp"
#include "support/collective_cases.hpp"
#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using vt::sharded;
using vt::Tensor;
using vt::distributed::mesh;
using vt::distributed::rank;
using vt::distributed::simulate;
using vt_test::block;
using vt_test::expect_close;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();

/// Where each rank has its Tensors: on the host and the device in turns, or all on the device.
vt::Device device_of_rank(bool mixed) { return mixed && rank() % 2 == 0 ? vt::cpu() : vt::cuda(0); }

TEST(CudaProcesses, EachCollectiveOnThreads) {
  constexpr int lanes = vt_test::lanes_of_cases;
  const Tensor xs = vt_test::random_tensor(vt::f64, {lanes, 4, 2}, 0.2, 1.2, 7);
  constexpr vt_test::Tolerance same{.relative = 1e-12, .absolute = 1e-13};
  for (const bool mixed : {true, false})
    simulate(lanes, [&] {
      const vt::Device here = device_of_rank(mixed);
      const Tensor x = block(xs, rank(), lanes).eval().to(here);
      for (const vt_test::Collective& c : vt_test::collective_cases) {
        if (std::string_view(c.name).starts_with("shared")) continue;  // with arrays on the host
        SCOPED_TRACE(c.name);
        const auto f = vt::shard_map(
            [&](Tensor v) { return vt::expand_dims(c.lane(v[0]), 0); },
            {.mesh = mesh({{"i", lanes}}), .in_specs = sharded("i"), .out_specs = sharded("i")});
        const Tensor got = f(x), wanted = block(c.whole(xs), rank(), lanes);
        EXPECT_EQ(got.device(), here);
        expect_close(got.to(vt::cpu()), wanted, same);
        expect_close(vt::jit(f)(x).to(vt::cpu()), wanted, same, "compiled");
      }
      const auto f =
          vt::jit(vt::shard_map([](Tensor v) { return vt::psum(v * 2.0, "i"); },
                                {.mesh = mesh({{"i", lanes}}), .in_specs = sharded("i")}));
      expect_close(f(x).to(vt::cpu()), 2.0 * vt::sum(xs, 0, true), same);
      const std::string text = f.explain_steps(x);
      EXPECT_EQ(text.find("psum on the host (it goes between processes)") != std::string::npos,
                here.kind == vt::Device::Kind::cuda)
          << text;
    });
}

// Sums that do not wait for each other are one message on both; loops meet in each iteration.
TEST(CudaProcesses, ATrainingStepOnThreads) {
  const Tensor all = vt_test::random_tensor(vt::f64, {4, 8}, -1, 1, 3),
               targets = vt_test::random_tensor(vt::f64, {4}, -1, 1, 4),
               start = vt_test::random_tensor(vt::f64, {8}, -1, 1, 5);
  const auto fitted = [](Tensor w, Tensor x, Tensor y) {
    const auto step = [&](Tensor v, Tensor bias) {
      const auto loss = [&](Tensor a, Tensor b) {
        return vt::mean(vt::square(vt::matmul(x, a) + b - y));
      };
      const auto [by_v, by_bias] = vt::grad<0, 1>(loss)(v, bias);
      return std::pair(v - 0.1 * vt::pmean(by_v, "i"), bias - 0.1 * vt::pmean(by_bias, "i"));
    };
    const auto [v, bias, n] =
        vt::while_loop([](Tensor, Tensor b, Tensor k) { return (k < 5) & (b < 100.0); },
                       [&](Tensor a, Tensor b, Tensor k) {
                         const auto [next, next_bias] = step(a, b);
                         return std::tuple(next, next_bias, k + 1);
                       },
                       std::tuple(w, vt::tensor(0.0, vt::f64), vt::tensor(0)));
    return v + bias;
  };
  const auto oracle = vt::vmap(
      fitted, {.in_axes = {vt::unmapped, 0, 0}, .out_axes = vt::unmapped, .axis_name = "i"});
  const Tensor wanted =
      oracle(start, all.reshape({2, 2, 8}), targets.reshape({2, 2})).eval().to(vt::cpu());
  for (const bool mixed : {true, false})
    simulate(2, [&] {
      const vt::Device here = device_of_rank(mixed);
      const auto f = vt::jit(vt::shard_map(
          fitted,
          {.mesh = mesh({{"i", 2}}), .in_specs = {vt::replicated, sharded("i"), sharded("i")}}));
      const Tensor w = start.eval().to(here), x = block(all, rank(), 2).eval().to(here),
                   y = block(targets, rank(), 2).eval().to(here);
      for (int k = 0; k < 2; ++k)
        expect_close(f(w, x, y).to(vt::cpu()), wanted, {.relative = 1e-12, .absolute = 1e-13});
      const std::string text = f.explain_steps(w, x, y);
      EXPECT_EQ(text.find("it goes between processes") != std::string::npos,
                here.kind == vt::Device::Kind::cuda)
          << text;
    });
}

}  // namespace
