// Complex numbers on a CUDA device: two real ones each, and nothing of them on the host.
#include <gtest/gtest.h>

#include <complex>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "support/cuda_program.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using vt_test::device;
using Tensors = std::vector<Tensor>;
using C = std::complex<double>;

void expect_on_device(const FlatFunction& f, const Tensors& operands,
                      const vt_test::Tolerance& tolerance, const std::string& what) {
  vt::reset_stats();
  vt_test::expect_same(f, operands, tolerance, what);
  EXPECT_EQ(vt::stats().host_steps, 0u) << what;
}
vt_test::Tolerance rounding(vt::DType d) {
  return d == vt::c64 ? vt_test::Tolerance{0, 4e-6, 4e-6} : vt_test::Tolerance{0, 1e-13, 1e-13};
}

TEST(CudaComplex, ElementwiseOps) {
  const std::vector<Op> unary = {
      Op::neg,    Op::abs,    Op::sign,         Op::exp,   Op::exp2, Op::expm1, Op::log,
      Op::log1p,  Op::log2,   Op::sqrt,         Op::rsqrt, Op::sin,  Op::cos,   Op::tan,
      Op::asin,   Op::acos,   Op::atan,         Op::sinh,  Op::cosh, Op::tanh,  Op::asinh,
      Op::acosh,  Op::atanh,  Op::sigmoid,      Op::real,  Op::imag, Op::conj,  Op::is_finite,
      Op::is_nan, Op::is_inf, Op::stop_gradient};
  const std::vector<Op> binary = {Op::add, Op::sub, Op::mul, Op::div, Op::pow, Op::eq, Op::ne};
  for (vt::DType d : {vt::c64, vt::c128}) {
    const Tensor z = vt_test::random_tensor(d, {70}, -2, 2, 1),
                 w = vt_test::random_tensor(d, {70}, -2, 2, 2);
    expect_on_device(
        [&](std::span<const Tensor> a) {
          Tensors results;
          for (Op op : unary) results.push_back(emit(op, {}, a.first(1), {}));
          for (Op op : binary) results.push_back(emit(op, {}, a, {}));
          for (int n : {-2, 0, 3})
            results.push_back(
                emit(Op::integer_pow, make_params(IntegerPowParams{n}), a.first(1), {}));
          for (vt::DType to : {vt::c64, vt::c128, vt::bool_}) results.push_back(a[0].astype(to));
          results.push_back(vt::complex(vt::real(a[0]) * 2, vt::imag(a[1])));
          results.push_back(vt::where(vt::real(a[0]) > 0, a[0], a[1]));
          results.push_back(a[0] * C(0.5, -1) + 2.0);
          return results;
        },
        {z, w}, rounding(d), std::string(vt::name_of(d)));
  }
}

TEST(CudaComplex, ReductionsScansAndProducts) {
  for (vt::DType d : {vt::c64, vt::c128}) {
    const Tensor z = vt_test::random_tensor(d, {6, 40}, -1, 1, 3),
                 w = vt_test::random_tensor(d, {40, 5}, -1, 1, 4);
    expect_on_device(
        [](std::span<const Tensor> a) {
          return Tensors{
              vt::sum(a[0], 1),  vt::sum(a[0], 0),       vt::mean(a[0]),
              vt::prod(a[0], 0), vt::cumsum(a[0], 1),    vt::cumprod(a[0], 1),
              vt::var(a[0], 1),  vt::matmul(a[0], a[1]), vt::sum(a[0] * vt::conj(a[0]), 1)};
        },
        {z, w}, rounding(d), std::string(vt::name_of(d)));
  }
}

TEST(CudaComplex, WhatMovesElements) {
  for (vt::DType d : {vt::c64, vt::c128}) {
    const Tensor z = vt_test::random_tensor(d, {7, 5}, -1, 1, 5),
                 rows = vt_test::random_tensor(d, {3, 5}, -1, 1, 6), at = vt::tensor({5, 0, 5});
    expect_on_device(
        [](std::span<const Tensor> a) {
          return Tensors{vt::take(a[0], a[2], 0),
                         vt::index_add(a[0], a[2], a[1]),
                         vt::transpose(a[0]),
                         vt::concatenate({a[0], a[1]}, 0),
                         vt::flip(a[0], 1),
                         vt::reshape(a[0], {5, 7}),
                         vt::pad(a[0], {{1, 0}, {0, 2}}),
                         vt::segment_sum(a[1], a[2], 7),
                         vt::real(a[0])[2],
                         vt::reduce_window(a[0], vt::WindowReduction::sum, {.window = {2, 3}})};
        },
        {z, rows, at}, rounding(d), std::string(vt::name_of(d)));
  }
}

TEST(CudaComplex, Convolutions) {
  for (vt::DType d : {vt::c64, vt::c128}) {
    const Tensor x = vt_test::random_tensor(d, {2, 9, 3}, -1, 1, 7),
                 filter = vt_test::random_tensor(d, {4, 3, 2}, -1, 1, 8);
    expect_on_device([](std::span<const Tensor> a) { return Tensors{vt::conv(a[0], a[1])}; },
                     {x, filter}, rounding(d), std::string(vt::name_of(d)));
  }
}

TEST(CudaComplex, LoopsAndDerivatives) {
  const Tensor z = vt_test::random_tensor(vt::c128, {20}, -1, 1, 9);
  // How soon each leaves the circle; and a sum over a scan.
  const auto escape = [](Tensor c) {
    return std::get<1>(
        vt::while_loop([](Tensor z, Tensor n) { return (vt::abs(z) < 2.0) & (n < 50); },
                       [c](Tensor z, Tensor n) { return std::tuple(z * z + c, n + 1); },
                       std::tuple(vt::zeros_like(c), vt::tensor(0, vt::i32))));
  };
  const auto recurrence = [](Tensor c) {
    return vt::scan([](Tensor s, Tensor x) { return std::pair(s * 0.5 + x, s); },
                    vt::zeros({}, vt::c128), c)
        .second;
  };
  const auto loss = [](Tensor c) { return vt::sum(vt::abs(vt::exp(c) * c - 1.0)); };
  expect_on_device(
      [&](std::span<const Tensor> a) {
        return Tensors{vt::vmap(escape)(a[0]), recurrence(a[0]), vt::grad(loss)(a[0])};
      },
      {z}, rounding(vt::c128), "c128");
}

}  // namespace
