// Kernels that go through one large array in turns, and stages for what is made of row sums:
// compiled equals interpreted, for rows that fill blocks and that do not, on any number of threads.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/compare_executors.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;

/// Does vt compile for this processor?
bool compiles() {
  const auto f = vt::jit([](Tensor x) { return x + 1.0; });
  f(vt::tensor(1.0));
  return vt::explain_steps(f)(vt::tensor(1.0)).rfind("interpreter", 0) != 0 &&
         vt::default_device().kind == vt::Device::Kind::cpu;
}

Tensor logistic(const Tensor& x, const Tensor& y, const Tensor& w) {
  const Tensor z = vt::matmul(x, w);
  return vt::sum(y * z - vt::softplus(z)) - 0.5 * vt::sum(w * w);
}
Tensor poisson(const Tensor& x, const Tensor& y, const Tensor& w) {
  const Tensor z = vt::matmul(x, w) * 0.1;
  return vt::mean(y * z - vt::exp(z));
}
Tensor least_squares(const Tensor& x, const Tensor& y, const Tensor& w) {
  return vt::sum(vt::square(vt::matmul(x, w) - y));
}

using Model = Tensor (*)(const Tensor&, const Tensor&, const Tensor&);

TEST(PairKernels, GradientsOfLinearModels) {
  const vt_test::Tolerance near64{.relative = 1e-11, .absolute = 1e-9},
      near32{.relative = 2e-4, .absolute = 2e-2};
  for (const Model model : {logistic, poisson, least_squares})
    for (const vt::DType dtype : {vt::f32, vt::f64})
      for (const auto& [rows, columns] :
           {std::pair(513, 700), {4096, 100}, {10'000, 37}, {5000, 128}, {300, 2000}, {9999, 64}}) {
        const Tensor x = vt_test::random_tensor(dtype, {rows, columns}, -1, 1, 1),
                     y = vt_test::random_tensor(dtype, {rows}, 0, 1, 2),
                     w = vt_test::random_tensor(dtype, {columns}, -0.3, 0.3, 3);
        const std::string what = std::to_string(rows) + "x" + std::to_string(columns);
        vt_test::expect_same(
            [&](std::span<const Tensor> in) {
              const auto [v, g] = vt::value_and_grad(
                  [&](const Tensor& w) { return model(in[0], in[1], w); })(in[2]);
              return Tensors{v, g};
            },
            {x, y, w}, dtype == vt::f64 ? near64 : near32, what);
        if (HasFailure()) return;
      }
}

TEST(PairKernels, AreFoundAndKeepTheirBitsOnThreads) {
  if (!compiles()) GTEST_SKIP() << "nothing is compiled for this processor here";
  const Tensor x = vt_test::random_tensor(vt::f32, {10'000, 100}, -1, 1, 1).eval(),
               y = vt_test::random_tensor(vt::f32, {10'000}, 0, 1, 2).eval(),
               w = vt_test::random_tensor(vt::f32, {100}, -0.3, 0.3, 3).eval();
  const auto slope =
      vt::jit(vt::value_and_grad([&](const Tensor& w) { return logistic(x, y, w); }));
  slope(w);
  EXPECT_NE(vt::explain_steps(slope)(w).find("one of the next step, which reads the same"),
            std::string::npos)
      << vt::explain_steps(slope)(w);
  const int threads = vt::num_threads();
  std::vector<float> first;
  for (const int on : {1, 2, 5}) {
    vt::set_num_threads(on);
    for (int k = 0; k < 3; ++k) {
      const std::vector<float> got = slope(w).second.to_vector<float>();
      if (first.empty()) first = got;
      EXPECT_EQ(got, first) << on << " threads";
    }
  }
  vt::set_num_threads(threads);
}

// Steps whose memory would be that of what the other one still reads, and chains of steps.
TEST(PairKernels, StepsThatReadEachOther) {
  const vt_test::Tolerance near{.relative = 1e-10, .absolute = 1e-9};
  const Tensor x = vt_test::random_tensor(vt::f64, {1500, 200}, -0.1, 0.1, 1),
               w = vt_test::random_tensor(vt::f64, {200}, -1, 1, 2);
  vt_test::expect_same(
      [&](std::span<const Tensor> in) {
        Tensor v = in[1];
        for (int k = 0; k < 4; ++k) v = vt::matmul(vt::tanh(vt::matmul(in[0], v)), in[0]);
        return Tensors{v};
      },
      {x, w}, near, "power iteration");
  vt_test::expect_same(
      [&](std::span<const Tensor> in) {
        const Tensor rows = vt::sigmoid(vt::sum(in[0], 1)), columns = vt::sum(in[0], 0);
        return Tensors{rows, columns, vt::matmul(rows, in[0]) + vt::sum(rows * rows),
                       vt::sum(in[0] * vt::reshape(rows, {1500, 1}), 0)};
      },
      {x, w}, near, "sums both ways");
}

TEST(ResultStages, WhatIsMadeOfRowSums) {
  const vt_test::Tolerance near{.relative = 1e-12, .absolute = 1e-11};
  for (const std::int64_t rows : {511, 512, 513, 767, 768, 1000, 4099})
    for (const std::int64_t columns : {1, 3, 16, 100}) {
      const Tensor x = vt_test::random_tensor(vt::f64, {rows, columns}, -1, 1, 1),
                   y = vt_test::random_tensor(vt::f64, {rows}, 0.5, 1, 2),
                   three = vt_test::random_tensor(vt::f64, {3, rows, columns}, -1, 1, 3);
      vt_test::expect_same(
          [&](std::span<const Tensor> in) {
            const Tensor s = vt::sum(in[0] * in[0], 1), e = vt::exp(-s) * in[1];
            return Tensors{vt::logsumexp(in[0], 1), e, vt::tanh(s) + vt::max(in[0], 1),
                           // not near a pole, where a sum's rounding counts a million times
                           vt::sin(vt::sum(in[2], 2)) / (1.5 + vt::cos(vt::sum(in[2], 2))),
                           vt::log(1.5 + vt::argmax(in[0], 1).astype(vt::f64)) * vt::erf(e)};
          },
          {x, y, three}, near, std::to_string(rows) + "x" + std::to_string(columns));
      if (HasFailure()) return;
    }
}

}  // namespace
