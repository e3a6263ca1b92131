// Functions of numbers on a CUDA device: the special functions, numbers of 16 bits, integers,
// conversions between all dtypes. Nothing element-wise is left to the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "src/jit/cuda/source/supported_ops.hpp"
#include "src/trace/record/scope.hpp"
#include "support/cuda_program.hpp"

namespace {

using namespace vt::detail;
using vt::Tensor;
using vt_test::device, vt_test::expect_same;
using Tensors = std::vector<Tensor>;

constexpr double infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

/// The ops in turn on the same operands, without a step on the host.
void expect_on_device(const std::vector<Op>& ops, const Tensors& operands,
                      const vt_test::Tolerance& tolerance, const std::string& what,
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
    // of which none reaches a device
    const bool is_lowered = op == Op::real || op == Op::imag || op == Op::conj ||
                            op == Op::complex || op == Op::meeting;
    if (is_elementwise(op)) {
      EXPECT_EQ(cuda::device_ways[op].way, is_lowered ? cuda::Way::lowered : cuda::Way::kernel)
          << name_of(op);
    }
    EXPECT_TRUE(cuda::device_ways[op].way != cuda::Way::host ||
                !cuda::device_ways[op].on_host.empty())
        << name_of(op);
  }
}

TEST(CudaMath, SpecialFunctions) {
  std::vector<double> values = {
      0.0,   -0.0, infinity, -infinity, nan, 1.0, -1.0, 2.0, -2.0, -3.0, 0.5,  -0.5, 1.5,   1e-3,
      -1e-3, 1e-6, 5.0,      8.0,       8.5, 12,  24,   48,  60.0, 30.0, -6.5, -9.5, 0.999, 1.001};
  for (int i = 0; i < 100; ++i) values.push_back(-7 + 0.171 * i);
  const std::vector<Op> ops = {
      Op::lgamma,     Op::digamma,     Op::gamma,      Op::erf_inv,   Op::erfcx,     Op::erfc_inv,
      Op::ndtr,       Op::log_ndtr,    Op::dawsn,      Op::expi,      Op::spence,    Op::bessel_i0e,
      Op::bessel_i1e, Op::bessel_k0e,  Op::bessel_k1e, Op::bessel_j0, Op::bessel_j1, Op::bessel_y0,
      Op::bessel_y1,  Op::fresnel_sin, Op::fresnel_cos};
  const auto n = static_cast<std::int64_t>(values.size());
  for (vt::DType d : vt_test::float_dtypes) {
    // The last digits of lgamma and digamma near their zeros are lost, as are those of the Bessel
    // functions.
    const vt_test::Tolerance tolerance = d == vt::f64
                                             ? vt_test::Tolerance{.ulps = 16, .absolute = 4e-15}
                                             : vt_test::Tolerance{.ulps = 1};
    expect_on_device(ops, {vt_test::make_tensor(d, {n}, values)}, tolerance,
                     std::string(vt::name_of(d)));
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
    expect_on_device({Op::zeta},
                     {vt_test::make_tensor(d, {n}, left), vt_test::make_tensor(d, {n}, right)},
                     {.ulps = d == vt::f64 ? 32.0 : 1.0}, std::string(vt::name_of(d)));
  }
}

// What is composed of them: series and continued fractions, a thread for each element.
TEST(CudaMath, FamiliesOfFunctions) {
  const Tensor a = vt_test::random_tensor(vt::f64, {40}, 0.1, 20, 1),
               b = vt_test::random_tensor(vt::f64, {40}, 0.1, 20, 2),
               x = vt_test::random_tensor(vt::f64, {40}, 0.01, 0.99, 3);
  vt::reset_stats();
  expect_same(
      [](std::span<const Tensor> v) {
        return Tensors{vt::igamma(v[0], v[1]),
                       vt::igammac(v[0], v[1]),
                       vt::igamma(1e6 * v[0], 1e6 * v[0] + 1e4 * (v[2] - 0.5)),
                       vt::special::zeta(-v[0]),
                       vt::betainc(v[0], v[1], v[2]),
                       vt::polygamma(2.0, v[0]),
                       vt::special::expn(3.0, v[1]),
                       vt::special::betaln(v[0], v[1]),
                       vt::special::ndtri(v[2]),
                       vt::polygamma(1.0, v[1]),
                       vt::special::poch(v[0], v[2]),
                       vt::random_gamma_grad(v[0], v[1])};
      },
      {a, b, x}, {.relative = 1e-11, .absolute = 1e-12}, "of f64");
  EXPECT_EQ(vt::stats().host_steps, 0u);
}

// --- numbers as bits

/// All numbers of a format of 16 bits, or random bits of a wider one.
Tensor patterns(vt::DType d, std::int64_t n, std::uint64_t seed) {
  const Tensor words = vt::random::bits(vt::random::key(seed), {n},
                                        vt::size_of(d) == 2   ? vt::u16
                                        : vt::size_of(d) == 4 ? vt::u32
                                                              : vt::u64);
  return vt::bitcast(vt::size_of(d) == 2 && n == 65536 ? vt::arange(n).astype(vt::u16) : words, d);
}

TEST(CudaMath, ConversionsBetweenAllDtypes) {
  const std::vector<std::int64_t> whole = {0,
                                           1,
                                           -1,
                                           2,
                                           100,
                                           127,
                                           128,
                                           -128,
                                           -129,
                                           255,
                                           256,
                                           2047,
                                           2049,
                                           2051,
                                           32767,
                                           32768,
                                           65503,
                                           65519,
                                           65520,
                                           65535,
                                           65536,
                                           257,
                                           -257,
                                           4097,
                                           (1 << 24) + 1,
                                           (std::int64_t{1} << 53) + 1,
                                           (std::int64_t{1} << 62) + (std::int64_t{1} << 38) + 1,
                                           (std::int64_t{1} << 54) + (std::int64_t{1} << 46) + 1,
                                           -(std::int64_t{1} << 40) - 1,
                                           std::numeric_limits<std::int64_t>::min(),
                                           std::numeric_limits<std::int64_t>::max()};
  const std::vector<double> parts = {0.5,          -0.5,
                                     1.5,          2.5,
                                     -2.5,         126.9,
                                     127.5,        -128.5,
                                     255.5,        65504,
                                     65519.9,      65520,
                                     1e-8,         0x1p-24,
                                     0x1p-25,      0x1.0001p-25,
                                     0x1p-134,     0x1.8p-133,
                                     3.39e38,      3.4e38,
                                     1e300,        -1e300,
                                     1e-300,       2147483647,
                                     2147483648.0, -2147483649.0,
                                     4294967295.5, 9.3e18,
                                     1.9e19,       -9.3e18,
                                     infinity,     -infinity,
                                     nan,          -0.0,
                                     1 + 0x1p-11,  1 + 0x1p-11 + 0x1p-30,
                                     1 + 0x1p-8,   1 + 0x1p-8 + 0x1p-40};
  for (vt::DType from : vt_test::all_dtypes) {
    const bool real = vt::is_float(from);
    const Tensor edges =
        real ? vt_test::make_tensor(from, {static_cast<std::int64_t>(parts.size())}, parts)
             : vt::tensor(whole).astype(from);
    const Tensor random = real ? patterns(from, 300, 1)
                               : vt::random::bits(vt::random::key(2), {300}, vt::u64).astype(from);
    vt::reset_stats();
    expect_same(
        [](std::span<const Tensor> a) {
          Tensors results;
          for (vt::DType to : vt_test::all_dtypes) results.push_back(a[0].astype(to));
          for (vt::DType to : {vt::c64, vt::c128}) results.push_back(a[0].astype(to));
          return results;
        },
        {vt::concatenate({edges, random}, 0)}, vt_test::exact,
        std::string("from ") + std::string(vt::name_of(from)));
    EXPECT_EQ(vt::stats().host_steps, 0u);
  }
}

TEST(CudaMath, NumbersOf16Bits) {
  for (vt::DType d : {vt::f16, vt::bf16}) {
    const std::string name(vt::name_of(d));
    const Tensor all = patterns(d, 65536, 0), some = patterns(d, 20000, 3),
                 others = patterns(d, 20000, 4);
    expect_on_device({Op::neg, Op::abs, Op::sign, Op::floor, Op::ceil, Op::round, Op::trunc,
                      Op::sqrt, Op::is_finite, Op::is_nan, Op::is_inf},
                     {all}, vt_test::exact, name);
    for (const auto& [exponent, mantissa] : {std::pair{5, 4}, {3, 2}, {5, 10}, {8, 3}, {4, 0}})
      expect_on_device({Op::reduce_precision}, {all}, vt_test::exact, name,
                       make_params(PrecisionParams{exponent, mantissa}));
    for (int exponent : {0, 1, 2, 3, -1, -3, 7})
      expect_on_device({Op::integer_pow}, {all}, {.ulps = 1},
                       name + " to " + std::to_string(exponent),
                       make_params(IntegerPowParams{exponent}));
    expect_on_device({Op::exp, Op::exp2, Op::expm1, Op::log, Op::log1p, Op::log2, Op::rsqrt,
                      Op::cbrt, Op::tanh, Op::sigmoid, Op::erf},
                     {all}, {.ulps = 1}, name);
    expect_on_device({Op::add, Op::sub, Op::mul, Op::div, Op::rem, Op::max, Op::min, Op::nextafter,
                      Op::eq, Op::lt, Op::ge},
                     {some, others}, vt_test::exact, name);
  }
}

TEST(CudaMath, IntegersOfAllSizes) {
  for (vt::DType d : vt_test::int_dtypes) {
    const Tensor a = vt::random::bits(vt::random::key(5), {500}, vt::u64).astype(d),
                 b = vt::random::bits(vt::random::key(6), {500}, vt::u64).astype(d),
                 small = (vt::random::bits(vt::random::key(7), {500}, vt::u64) % 70).astype(d),
                 edges = vt::where(vt::arange(500) % 3 == 0, 0, b).astype(d);
    const std::string name(vt::name_of(d));
    expect_on_device({Op::add, Op::sub, Op::mul, Op::max, Op::min, Op::and_, Op::or_, Op::xor_,
                      Op::eq, Op::lt, Op::ge, Op::div, Op::rem},
                     {a, edges}, vt_test::exact, name);
    expect_on_device({Op::pow, Op::shift_left, Op::shift_right_logical, Op::shift_right_arithmetic,
                      Op::div, Op::rem},
                     {a, small}, vt_test::exact, name);
    expect_on_device({Op::neg, Op::abs, Op::sign, Op::not_, Op::popcount, Op::clz}, {a},
                     vt_test::exact, name);
    for (int exponent : {0, 3, -1, -2})
      expect_on_device({Op::integer_pow}, {small}, vt_test::exact,
                       name + " to " + std::to_string(exponent),
                       make_params(IntegerPowParams{exponent}));
  }
}

}  // namespace
