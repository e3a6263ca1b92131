// Element-wise kernels inside the kernels of products on a device: how many launches there are, and
// that results are those without.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_emulator.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensors(const Tensors&)>;

const vt_test::Emulator* const emulator = vt_test::use_cuda_emulator();

Tensor numbers(vt::DType d, const vt::Shape& shape, std::uint64_t seed) {
  return vt_test::random_tensor(d, shape, -1, 1, seed);
}

/// f on the device = f on the host, by so many kernels, so many of them with an epilogue.
void expect(const std::string& what, const Function& f, const Tensors& arguments,
            std::uint64_t launches, std::uint64_t epilogues,
            const vt_test::Tolerance& tolerance = {.relative = 1e-5, .absolute = 1e-5}) {
  Tensors there;
  for (const Tensor& t : arguments) there.push_back(t.to(vt::cuda(0)));
  const auto compiled = vt::jit(f);
  for (std::uint64_t seed : {0, 1}) {
    if (emulator) emulator->set_seed(seed);
    vt::reset_stats();
    const Tensors actual = compiled(there);
    EXPECT_EQ(vt::stats().launches, launches) << what << "\n" << vt::explain_steps(compiled)(there);
    EXPECT_EQ(vt::stats().product_epilogues, epilogues) << what << "\n"
                                                        << vt::explain_steps(compiled)(there);
    const Tensors expected = f(arguments);
    for (std::size_t i = 0; i < expected.size(); ++i)
      vt_test::expect_close(actual[i], expected[i], tolerance,
                            what + " result " + std::to_string(i));
  }
  if (emulator) emulator->set_seed(0);
}

TEST(CudaEpilogue, BiasActivationAndResidual) {
  for (vt::DType d : {vt::f32, vt::f16}) {
    const Tensor x = numbers(d, {70, 40}, 1), w = numbers(d, {40, 40}, 2), b = numbers(d, {40}, 3);
    expect(std::string("layer of ") + vt::name_of(d),
           [](const Tensors& a) {
             return Tensors{vt::maximum(vt::matmul(a[0], a[1]) + a[2], 0.0f) + a[0]};
           },
           {x, w, b}, 1, 1,
           {.relative = d == vt::f16 ? 4e-3 : 1e-5, .absolute = d == vt::f16 ? 4e-3 : 1e-5});
  }
}

TEST(CudaEpilogue, TheProductIsReadElsewhereToo) {
  const Tensor x = numbers(vt::f32, {70, 40}, 1), w = numbers(vt::f32, {40, 48}, 2);
  expect(
      "kept",
      [](const Tensors& a) {
        const Tensor y = vt::matmul(a[0], a[1]);
        return Tensors{y, vt::tanh(y) * 0.5f};
      },
      {x, w}, 1, 1);
}

TEST(CudaEpilogue, SumsInParts) {
  const Tensor x = numbers(vt::f32, {24, 1100}, 1), w = numbers(vt::f32, {1100, 40}, 2),
               b = numbers(vt::f32, {40}, 3);
  expect(
      "long sums",
      [](const Tensors& a) { return Tensors{vt::tanh(vt::matmul(a[0], a[1]) * 0.01f + a[2])}; },
      {x, w, b}, 2, 1);
}

TEST(CudaEpilogue, AnElementPerThread) {
  const Tensor x = numbers(vt::f64, {3, 9, 5}, 1), w = numbers(vt::f64, {3, 5, 4}, 2),
               b = numbers(vt::f64, {3, 1, 4}, 3);
  expect(
      "small ones of a batch",
      [](const Tensors& a) { return Tensors{vt::exp(vt::matmul(a[0], a[1])) - a[2]}; }, {x, w, b},
      1, 1);
}

TEST(CudaEpilogue, HeadsOfARow) {
  const Tensor x = numbers(vt::f32, {40, 32}, 1), w = numbers(vt::f32, {32, 48}, 2),
               scale = numbers(vt::f32, {40, 6, 1}, 3);
  expect(
      "split rows",
      [](const Tensors& a) {
        return Tensors{vt::reshape(vt::matmul(a[0], a[1]), {40, 6, 8}) * a[2]};
      },
      {x, w, scale}, 1, 1);
}

TEST(CudaEpilogue, Convolutions) {
  const Tensor x = numbers(vt::f32, {2, 9, 8, 3}, 1), w = numbers(vt::f32, {3, 3, 3, 14}, 2),
               b = numbers(vt::f32, {14}, 3);
  expect(
      "features last",
      [](const Tensors& a) { return Tensors{vt::maximum(vt::conv(a[0], a[1]) + a[2], 0.0f)}; },
      {x, w, b}, 1, 1);
}

TEST(CudaEpilogue, WhatStaysApart) {
  const Tensor x = numbers(vt::f32, {40, 32}, 1), w = numbers(vt::f32, {32, 48}, 2);
  expect(
      "turned",
      [](const Tensors& a) {
        return Tensors{vt::transpose(vt::tanh(vt::matmul(a[0], a[1]))) + 0.0f};
      },
      {x, w}, 2, 0);
  expect(
      "rows of a softmax",
      [](const Tensors& a) { return Tensors{vt::softmax(vt::matmul(a[0], a[1]), 1)}; }, {x, w}, 2,
      0);
  expect(
      "a product of a product",
      [](const Tensors& a) {
        const Tensor y = vt::matmul(a[0], a[1]);
        return Tensors{vt::tanh(y), vt::matmul(y, vt::transpose(y))};
      },
      {x, w}, 2, 1);
}

}  // namespace
