// Functions made of exactly rounded operations: right to a few units in the last place, at the ends
// of their ranges too; their derivatives; and the same bits compiled as interpreted.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numbers>
#include <vector>

#include <vt/vt.hpp>

#include "src/trace/ops/random/exact_functions.hpp"
#include "support/property.hpp"

namespace {

namespace exact = vt::detail::exact;
using vt::Tensor;
using Numbers = std::vector<double>;
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

void expect_values(Tensor (*f)(const Tensor&), double (*reference)(double), const Numbers& at,
                   double ulps) {
  const Tensor x = vt_test::make_tensor(vt::f64, {static_cast<std::int64_t>(at.size())}, at);
  Numbers expected;
  for (double v : at) expected.push_back(reference(v));
  const Tensor value = f(x);
  vt_test::expect_close(value, vt_test::make_tensor(vt::f64, x.shape(), expected), {.ulps = ulps});
  EXPECT_EQ(vt::bitcast(vt::jit(f)(x), vt::u64).to_vector<std::uint64_t>(),
            vt::bitcast(value, vt::u64).to_vector<std::uint64_t>());
}
Numbers spread(double low, double high, int n) {
  Numbers x;
  for (int i = 0; i <= n; ++i) x.push_back(low + (high - low) * i / n);
  return x;
}

TEST(ExactFunctions, Log) {
  Numbers at = spread(0.5, 2.0, 3001);
  for (int k = -1074; k < 1024; k += 7) at.push_back(std::ldexp(1.37, k));
  at.insert(at.end(), {0.0, -0.0, -1.0, infinity, -infinity, nan, 1.0, 1 + 0x1p-52, 1 - 0x1p-53,
                       0x1p-1074, 0x1p-1022, 0x1.fffffffffffffp1023});
  expect_values(exact::log, [](double x) { return std::log(x); }, at, 3);
}

TEST(ExactFunctions, Log1p) {
  Numbers at = spread(-1.0, 2.0, 3001);
  for (int k = -1070; k < 0; k += 7) at.push_back(std::ldexp(-1.37, k));
  expect_values(exact::log1p, [](double x) { return std::log1p(x); }, at, 4);
}

TEST(ExactFunctions, Exp) {
  Numbers at = spread(-707.0, 709.7, 5003);
  at.insert(at.end(),
            {0.0, 1e-300, -1e-17, 710.0, 1e300, infinity, -746.0, -1e300, -infinity, nan});
  expect_values(exact::exp, [](double x) { return std::exp(x); }, at, 3);
  EXPECT_NEAR(exact::exp(vt::tensor(-740.0)).item<double>(), std::exp(-740.0), 0x1p-1074);
}

// Back by erfc, in the tail that keeps all digits.
TEST(ExactFunctions, ErfInv) {
  Numbers at = spread(-0.9999, 0.9999, 2001);
  for (int k = 2; k <= 53; ++k) at.push_back(1 - std::ldexp(1.0, -k));
  at.insert(at.end(), {1e-300, -1e-9});
  const Numbers y = exact::erf_inv(vt::tensor(at)).to_vector<double>();
  for (std::size_t i = 0; i < at.size(); ++i) {
    const double a = std::fabs(at[i]), back = a > 0.5 ? std::erfc(std::fabs(y[i])) / (1 - a)
                                                      : std::erf(std::fabs(y[i])) / a;
    EXPECT_NEAR(back, 1, 2e-15 * (1 + 2 * y[i] * y[i])) << at[i];
    EXPECT_EQ(std::signbit(y[i]), std::signbit(at[i]));
  }
  EXPECT_EQ(exact::erf_inv(vt::tensor({1.0, -1.0, 0.0})).to_vector<double>(),
            (Numbers{infinity, -infinity, 0}));
  EXPECT_TRUE(std::isnan(exact::erf_inv(vt::tensor(1.5)).item<double>()));
}

// x and 1 − x² of x = 1 − p, down to the least p that is asked for.
TEST(ExactFunctions, ErfInvOfTails) {
  Numbers p = spread(0.01, 0.99, 500);
  for (int k = 2; k < 990; k += 3) p.push_back(std::ldexp(1.37, -k));
  const Tensor tail = vt::tensor(p);
  const auto inverse = [](Tensor t) { return exact::erf_inv(1.0 - t, t * (2.0 - t)); };
  const Numbers y = inverse(tail).to_vector<double>();
  for (std::size_t i = 0; i < p.size(); ++i) {
    const long double back = std::erfc(static_cast<long double>(y[i])) / p[i];
    EXPECT_NEAR(static_cast<double>(back), 1, 2e-15 * (1 + 2 * y[i] * y[i])) << p[i];
  }
  EXPECT_EQ(vt::jit(inverse)(tail).to_vector<double>(), y);
}

TEST(ExactFunctions, Erfcx) {
  const auto reference = [](double x) {
    const long double t = x, square = t * t;
    if (x < 60) return static_cast<double>(std::exp(square) * std::erfc(t));
    const long double y = 1 / (2 * square);
    return static_cast<double>(std::numbers::inv_sqrtpi_v<long double> / t *
                               (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y * (1 - 9 * y))))));
  };
  Numbers at = spread(0.0, 70.0, 3001);
  for (int k = -1070; k < 1000; k += 9) at.push_back(std::ldexp(1.37, k));
  expect_values(exact::erfcx, reference, at, 8);
}

TEST(ExactFunctions, TanPi) {
  const auto reference = [](double x) {
    return static_cast<double>(
        std::tan(static_cast<long double>(x) * std::numbers::pi_v<long double>));
  };
  expect_values(exact::tan_pi, reference, spread(-0.4999, 0.4999, 3001), 4);
}

TEST(ExactFunctions, Derivatives) {
  const Tensor x = vt::linspace(0.1, 0.9, 9, vt::f64);
  const auto slope = [&](auto f) { return vt::vmap(vt::grad(f))(x); };
  const vt_test::Tolerance rounding{.relative = 1e-13};
  vt_test::expect_close(slope([](Tensor t) { return exact::log(t); }), 1.0 / x, rounding);
  vt_test::expect_close(slope([](Tensor t) { return exact::exp(2.0 * t); }), 2.0 * vt::exp(2.0 * x),
                        rounding);
  vt_test::expect_close(slope([](Tensor t) { return exact::erf_inv(t); }),
                        slope([](Tensor t) { return vt::erf_inv(t); }), rounding);
  vt_test::expect_close(slope(vt::grad([](Tensor t) { return exact::log(t); })), -1.0 / (x * x),
                        rounding);
}

}  // namespace
