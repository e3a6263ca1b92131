// Functions of numbers on a CUDA device: the special functions, numbers of 16 bits, integers, conversions between all dtypes. Nothing element-wise is
// left to the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/op_rows.hpp"
#include "src/trace/scope.hpp"
#include "support/cuda_program.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using vt_test::device, vt_test::expect_same;
using Tensors = std::vector<Tensor>;

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// The ops in turn on the same operands, without a step on the host.
void expect_on_device(const std::vector<Op>& ops, const Tensors& operands, const vt_test::Tolerance& tolerance, const std::string& what,
                      const ParamsRef& params = {}) {
  vt::reset_stats();
  expect_same(
      [&](std::span<const Tensor> a) {
        Tensors results;
        for (Op op : ops) results.push_back(emit(op, params, a, {}));
        return results;
      },
      operands, tolerance, what);
  EXPECT_EQ(vt::stats().host_steps, 0u) << what;
}

TEST(CudaMath, EveryElementwiseOpHasARow) {
  for (int i = 0; i < op_count; ++i) {
    const auto op = static_cast<Op>(i);
    const bool complex = op == Op::real || op == Op::imag || op == Op::conj || op == Op::complex;  // of which none reaches a device
    if (is_elementwise(op)) {
      EXPECT_EQ(cuda::op_rows[op].way, complex ? cuda::Way::lowered : cuda::Way::kernel) << name_of(op);
    }
    EXPECT_TRUE(cuda::op_rows[op].way != cuda::Way::host || !cuda::op_rows[op].on_host.empty()) << name_of(op);
  }
}

TEST(CudaMath, SpecialFunctions) {
  std::vector<double> values = {0.0,   -0.0, infinity, -infinity, nan, 1.0, -1.0, 2.0, -2.0, -3.0, 0.5,  -0.5, 1.5,   1e-3,
                                -1e-3, 1e-6, 5.0,      8.0,       8.5, 12,  24,   48,  60.0, 30.0, -6.5, -9.5, 0.999, 1.001};
  for (int i = 0; i < 100; ++i) values.push_back(-7 + 0.171 * i);
  const std::vector<Op> ops = {Op::lgamma,     Op::digamma,   Op::gamma,     Op::erf_inv,   Op::erfcx,      Op::erfc_inv,    Op::ndtr,
                               Op::log_ndtr,   Op::dawsn,     Op::expi,      Op::spence,    Op::bessel_i0e, Op::bessel_i1e,  Op::bessel_k0e,
                               Op::bessel_k1e, Op::bessel_j0, Op::bessel_j1, Op::bessel_y0, Op::bessel_y1,  Op::fresnel_sin, Op::fresnel_cos};
  const auto n = static_cast<std::int64_t>(values.size());
  for (vt::DType d : vt_test::float_dtypes) {
    // The last digits of lgamma and digamma near their zeros are lost, as are those of the Bessel functions.
    const vt_test::Tolerance tolerance = d == vt::f64 ? vt_test::Tolerance{.ulps = 16, .absolute = 4e-15} : vt_test::Tolerance{.ulps = 1};
    expect_on_device(ops, {vt_test::make_tensor(d, {n}, values)}, tolerance, std::string(vt::name_of(d)));
  }
}

TEST(CudaMath, Zeta) {
  const std::vector<double> s = {1.0, 0.5, 1.01, 1.5, 2, 3, 7, 20.5, 100, infinity, nan},
                            q = {1, 0.25, 2.5, 40, 1e5, 0, -1, -2.5, -0.5, infinity, nan};
  std::vector<double> left, right;
  for (double a : s)
    for (double b : q) {
      left.push_back(a);
      right.push_back(b);
    }
  for (vt::DType d : {vt::f32, vt::f64}) {
    const auto n = static_cast<std::int64_t>(left.size());
    expect_on_device({Op::zeta}, {vt_test::make_tensor(d, {n}, left), vt_test::make_tensor(d, {n}, right)}, {.ulps = d == vt::f64 ? 32.0 : 1.0},
                     std::string(vt::name_of(d)));
  }
}

// What is composed of them: series and continued fractions, a thread for each element.
TEST(CudaMath, FamiliesOfFunctions) {
  const Tensor a = vt_test::random_tensor(vt::f64, {40}, 0.1, 20, 1), b = vt_test::random_tensor(vt::f64, {40}, 0.1, 20, 2),
               x = vt_test::random_tensor(vt::f64, {40}, 0.01, 0.99, 3);
  vt::reset_stats();
  expect_same(
      [](std::span<const Tensor> v) {
        return Tensors{vt::igamma(v[0], v[1]),
                       vt::igammac(v[0], v[1]),
                       vt::betainc(v[0], v[1], v[2]),
                       vt::polygamma(2.0, v[0]),
                       vt::expn(3.0, v[1]),
                       vt::betaln(v[0], v[1]),
                       vt::ndtri(v[2]),
                       vt::trigamma(v[1]),
                       vt::poch(v[0], v[2]),
                       vt::random_gamma_grad(v[0], v[1])};
      },
      {a, b, x}, {.relative = 1e-11, .absolute = 1e-12}, "of f64");
  EXPECT_EQ(vt::stats().host_steps, 0u);
}

}  // namespace
