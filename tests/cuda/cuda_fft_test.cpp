// Fourier transforms on a CUDA device, here the emulated one: lengths of all factors, rows in one
// step and in two, real and complex, along any axes = the host's results; what the host still does,
// and why.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_program.hpp"

namespace {

namespace f = vt::fft;
using vt::Shape;
using vt::Tensor;
using vt_test::emulator, vt_test::Tensors;
using Function = vt_test::TensorFunction;

Tensor numbers(vt::DType d, const Shape& shape) {
  return vt_test::random_tensor(d, shape, -1, 1, 5);
}

/// `steps` of the host are expected, and `log` by explain.
void expect_same(const Function& function, const Tensors& arguments, const std::string& what,
                 bool on_host = false, const std::string& log = {}) {
  const auto [actual, expected, text] = vt_test::on_both(function, arguments, what);
  const double epsilon = vt::real_dtype(arguments[0].dtype()) == vt::f64 ? 0x1p-52 : 0x1p-23;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    // Errors grow with the logarithm of the length, and are those of the largest numbers.
    const Tensor sizes = vt::abs(expected[i]);
    const double most =
        sizes.shape().elements() > 0 ? vt::max(sizes).astype(vt::f64).item<double>() : 0;
    vt_test::expect_close(
        actual[i], expected[i],
        {.absolute =
             (2 + std::log2(1.0 + static_cast<double>(sizes.shape().elements()))) * epsilon * most},
        what + " result " + std::to_string(i));
  }
  EXPECT_EQ(vt::stats().host_steps > 0, on_host) << what << "\n" << text;
  EXPECT_NE(text.find(log), std::string::npos) << text;
}

TEST(CudaFft, LengthsOfAllFactors) {
  for (vt::DType d : {vt::f32, vt::f64})
    for (std::int64_t n : {1, 2, 12, 17, 64, 100, 143, 1024, 1190}) {
      if (emulator) emulator->set_seed(static_cast<unsigned long>(n));
      expect_same(
          [n](const Tensors& a) {
            const Tensor spectrum = f::rfft(a[0]);
            return Tensors{f::fft(a[1]), f::ifft(a[1]), spectrum, f::irfft(spectrum, n)};
          },
          {numbers(d, {3, n}), numbers(vt::complex_dtype(d), {3, n})},
          std::string(vt::name_of(d)) + " " + std::to_string(n));
    }
  if (emulator) emulator->set_seed(0);
}

TEST(CudaFft, RowsInTwoSteps) {
  for (const auto& [d, n] :
       {std::pair{vt::f32, std::int64_t{8192}}, {vt::f32, 5000}, {vt::f64, 2187}})
    expect_same(
        [n = n](const Tensors& a) {
          const Tensor spectrum = f::rfft(a[0]);
          return Tensors{f::fft(a[1]), f::ifft(a[1]), spectrum, f::irfft(spectrum, n)};
        },
        {numbers(d, {2, n}), numbers(vt::complex_dtype(d), {2, n})}, std::to_string(n));
}

TEST(CudaFft, AnyAxes) {
  expect_same(
      [](const Tensors& a) {
        return Tensors{f::fftn(a[0]),
                       f::ifft2(a[0]),
                       f::fft(a[0], std::nullopt, 0),
                       f::fft(a[0], std::nullopt, 1),
                       f::rfftn(a[1]),
                       f::irfft2(f::rfft2(a[1])),
                       f::irfftn(f::rfftn(a[1]))};
      },
      {numbers(vt::c128, {3, 20, 6}), numbers(vt::f64, {3, 10, 6})}, "several axes");
  // The first of two axes in two steps.
  expect_same([](const Tensors& a) { return Tensors{f::fft2(a[0])}; },
              {numbers(vt::c128, {2100, 3})}, "long columns");
  expect_same(
      [](const Tensors& a) {
        return Tensors{
            vt::grad([](Tensor x) { return vt::sum(vt::square(vt::abs(f::rfft(x)))); })(a[0])};
      },
      {numbers(vt::f64, {2, 15})}, "a derivative");
}

TEST(CudaFft, EdgesOfSpectra) {
  // The imaginary parts of the first element and of the middle one do not count.
  const Tensor half = vt::complex(numbers(vt::f64, {5}), vt::ones({5}, vt::f64));
  expect_same([](const Tensors& a) { return Tensors{f::irfft(a[0]), f::irfft(a[0], 9)}; },
              {half.eval()}, "edges");
  expect_same([](const Tensors& a) { return Tensors{f::fft(a[0])}; }, {vt::zeros({0, 8}, vt::c64)},
              "no rows");
}

TEST(CudaFft, WhatTheHostDoes) {
  expect_same([](const Tensors& a) { return Tensors{f::fft(a[0])}; },
              {numbers(vt::c64, {1, 10007})}, "a long prime", true,
              "long rows without two factors that fit in shared memory");
}

}  // namespace
