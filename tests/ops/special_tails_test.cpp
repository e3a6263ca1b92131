// Special functions far out, at negative arguments, for large and tiny ones, and their slopes
// there, against values of mpmath; powers of integers over the whole range, and interpolation
// beside infinities. Each as it is, jitted and mapped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <vector>
#include <vt/vt.hpp>

namespace {

using vt::Tensor;
using Tensors = std::vector<Tensor>;
using Function = std::function<Tensor(const Tensors&)>;
constexpr double inf = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

struct Reference {
  const char* name;
  std::vector<double> x;
  double value, ulps;
};
const std::vector<Reference>& references() {
  static const std::vector<Reference> all = {
#include "special_references.inc"
  };
  return all;
}

Tensor slope(const Function& f, const Tensors& x, std::size_t i) {
  const auto total = [&](Tensor t) {
    Tensors at = x;
    at[i] = t;
    return vt::sum(f(at));
  };
  return vt::grad(total)(x[i]);
}
const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> all = {
      {"gamma", [](const Tensors& x) { return vt::special::gamma(x[0]); }},
      {"binom", [](const Tensors& x) { return vt::special::binom(x[0], x[1]); }},
      {"poch", [](const Tensors& x) { return vt::special::poch(x[0], x[1]); }},
      {"beta", [](const Tensors& x) { return vt::special::beta(x[0], x[1]); }},
      {"igamma", [](const Tensors& x) { return vt::igamma(x[0], x[1]); }},
      {"igammac", [](const Tensors& x) { return vt::igammac(x[0], x[1]); }},
      {"igamma_large", [](const Tensors& x) { return vt::igamma(x[0], x[1]); }},
      {"igammac_large", [](const Tensors& x) { return vt::igammac(x[0], x[1]); }},
      {"betainc", [](const Tensors& x) { return vt::betainc(x[0], x[1], x[2]); }},
      {"kl_div", [](const Tensors& x) { return vt::special::kl_div(x[0], x[1]); }},
      {"logit", [](const Tensors& x) { return vt::special::logit(x[0]); }},
      {"zeta", [](const Tensors& x) { return vt::zeta(x[0], x[1]); }},
      {"riemann_zeta", [](const Tensors& x) { return vt::special::zeta(x[0]); }},
      {"riemann_zeta_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::special::zeta(t[0]); }, x, 0);
       }},
      {"polygamma", [](const Tensors& x) { return vt::polygamma(x[0], x[1]); }},
      {"gelu", [](const Tensors& x) { return vt::gelu(x[0]); }},
      {"gelu_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::gelu(t[0]); }, x, 0);
       }},
      {"ndtr_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::special::ndtr(t[0]); }, x, 0);
       }},
      {"erfc_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::erfc(t[0]); }, x, 0);
       }},
      {"ndtri_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::special::ndtri(t[0]); }, x, 0);
       }},
      {"beta_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::special::beta(t[0], t[1]); }, x, 0);
       }},
      {"poch_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::special::poch(t[0], t[1]); }, x, 0);
       }},
      {"binom_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::special::binom(t[0], t[1]); }, x, 0);
       }},
      {"igamma_slope_of_a",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::igamma(t[0], t[1]); }, x, 0);
       }},
      {"igamma_slope",
       [](const Tensors& x) {
         return slope([](const Tensors& t) { return vt::igamma(t[0], t[1]); }, x, 1);
       }},
  };
  return all;
}

/// A function's values as it is, jitted and mapped.
std::map<std::string, Tensor> in_all_ways(const Function& f, const Tensors& x) {
  const std::function<Tensor(Tensor)> one = [&](Tensor a) { return f({a}); };
  const std::function<Tensor(Tensor, Tensor)> two = [&](Tensor a, Tensor b) { return f({a, b}); };
  const std::function<Tensor(Tensor, Tensor, Tensor)> three = [&](Tensor a, Tensor b, Tensor c) {
    return f({a, b, c});
  };
  if (x.size() == 1)
    return {{"plain", f(x)}, {"jit", vt::jit(one)(x[0])}, {"vmap", vt::vmap(one)(x[0])}};
  if (x.size() == 2)
    return {
        {"plain", f(x)}, {"jit", vt::jit(two)(x[0], x[1])}, {"vmap", vt::vmap(two)(x[0], x[1])}};
  return {{"plain", f(x)},
          {"jit", vt::jit(three)(x[0], x[1], x[2])},
          {"vmap", vt::vmap(three)(x[0], x[1], x[2])}};
}

/// The error in units in the last place of a format with so many bits and such a least number.
double ulps_off(double got, double want, int bits, int least) {
  if (std::isnan(want)) return std::isnan(got) ? 0 : inf;
  if (got == want) return 0;
  if (!std::isfinite(got) || !std::isfinite(want)) return inf;
  int e = 0;
  std::frexp(want, &e);
  return std::fabs(got - want) / std::ldexp(1.0, std::max(e - bits, least));
}

class Tails : public testing::TestWithParam<const char*> {};
TEST_P(Tails, AgainstReferences) {
  std::vector<const Reference*> rows;
  for (const Reference& r : references())
    if (r.name == std::string(GetParam())) rows.push_back(&r);
  ASSERT_FALSE(rows.empty());
  const auto n = static_cast<std::int64_t>(rows.size());
  for (const vt::DType d : {vt::f64, vt::f32}) {
    Tensors x;
    for (std::size_t i = 0; i < rows[0]->x.size(); ++i) {
      std::vector<double> column;
      for (const Reference* r : rows) column.push_back(r->x[i]);
      x.push_back(vt::tensor(column, {n}).astype(d));
    }
    for (const auto& [way, result] : in_all_ways(functions().at(GetParam()), x)) {
      const auto got = result.to_vector<double>();
      for (std::size_t i = 0; i < got.size(); ++i) {
        const Reference& r = *rows[i];
        bool fits = true;  // a named argument need not be one of f32
        for (double v : r.x)
          fits = fits && (d == vt::f64 || static_cast<double>(static_cast<float>(v)) == v);
        if (!fits) continue;
        const double want =
            d == vt::f64 ? r.value : static_cast<double>(static_cast<float>(r.value));
        const double off =
            d == vt::f64 ? ulps_off(got[i], want, 53, -1074) : ulps_off(got[i], want, 24, -149);
        // In f32 gelu and slopes are made of f32 numbers.
        const bool is_slope = std::string(r.name).find("slope") != std::string::npos;
        EXPECT_LE(off, d == vt::f64 || !is_slope ? std::max(r.ulps, 8.0) : 64.0)
            << r.name << testing::PrintToString(r.x) << " of " << vt::name_of(d) << ", " << way
            << ", is " << got[i] << ", not " << want;
        EXPECT_TRUE(want != 0 || r.name != std::string("gamma") ||
                    std::signbit(got[i]) == std::signbit(want))
            << r.name << testing::PrintToString(r.x);
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Each, Tails,
                         testing::Values("gamma", "binom", "poch", "beta", "igamma", "igammac",
                                         "betainc", "kl_div", "logit", "zeta", "polygamma", "gelu",
                                         "gelu_slope", "ndtr_slope", "erfc_slope", "ndtri_slope",
                                         "beta_slope", "poch_slope", "binom_slope", "igamma_slope",
                                         "igamma_large", "igammac_large", "igamma_slope_of_a",
                                         "riemann_zeta", "riemann_zeta_slope"),
                         [](const auto& info) { return std::string(info.param); });

TEST(TailsValues, AtTheEnds) {
  const auto value = [](const Tensor& t) { return t.astype(vt::f64).item<double>(); };
  const auto of = [&](Tensor (*f)(vt::Operand, vt::Operand), double a, double b) {
    return value(f(vt::tensor(a), vt::tensor(b)));
  };
  EXPECT_EQ(of(vt::special::beta, 0.0, 0.5), inf);
  EXPECT_EQ(of(vt::special::beta, -0.0, 0.5), -inf);
  EXPECT_EQ(of(vt::special::beta, 0.0, 0.0), inf);
  EXPECT_TRUE(std::isnan(of(vt::special::beta, -2.0, 0.5)));
  EXPECT_EQ(of(vt::special::beta, -2.5, 2.5), 0);  // 1 over a pole
  EXPECT_EQ(of(vt::special::betaln, -2.5, 2.5), -inf);
  // Where the product or the sum is no number: log Γ(b) − b log a, and −2 a log 2.
  for (const double b : {100.0, 1e9}) {
    const double wanted = std::lgamma(b) - b * std::log(1e303);
    EXPECT_NEAR(of(vt::special::betaln, 1e303, b) / wanted, 1, 1e-14) << b;
    EXPECT_NEAR(of(vt::special::betaln, b, 1e303) / wanted, 1, 1e-14) << b;
  }
  for (const double a : {1.4e154, 1e303, 1e308})
    EXPECT_NEAR(of(vt::special::betaln, a, a) / a / (2 * std::numbers::ln2), -1, 1e-14) << a;
  EXPECT_EQ(of(vt::special::betaln, 1.7e308, 1.7e308), -inf);
  EXPECT_EQ(of(vt::special::binom, 0.0, 0.0), 1);
  EXPECT_EQ(of(vt::special::binom, 5.0, 6.0), 0);
  EXPECT_EQ(of(vt::special::binom, -1.5, 0.0), 1);
  EXPECT_TRUE(std::isnan(of(vt::special::binom, -3.0, 0.5)));
  EXPECT_EQ(of(vt::special::poch, -3.0, 2.0), 6);
  EXPECT_EQ(of(vt::special::poch, 5.0, 0.0), 1);
  EXPECT_EQ(of(vt::special::poch, 2.0, 400.0), inf);
  EXPECT_EQ(of(vt::special::poch, 400.0, -399.5), 0);
  EXPECT_EQ(of(vt::igamma, 1e4, 1.0), 0);
  EXPECT_EQ(of(vt::igammac, 1e4, 1e9), 0);
  EXPECT_EQ(value(vt::special::logit(vt::tensor(0.5))), 0);
  EXPECT_EQ(value(vt::special::logit(vt::tensor(1.0))), inf);
  EXPECT_EQ(value(vt::gelu(vt::tensor(-inf))) == 0 || std::isnan(value(vt::gelu(vt::tensor(-inf)))),
            true);
  // log x − ψ(a) − 1/a, of which two terms cancel for small a.
  const Tensor x = vt::tensor(1.812440635134814e-07);
  EXPECT_NEAR(
      vt::grad([&](Tensor a) { return vt::igamma(a, x); })(vt::tensor(1.0323741427699478e-10))
          .item<double>(),
      -14.946205790227319, 1e-12);
}

// --- integer powers ------------------------------------------------------------------------------

struct Format {
  vt::DType dtype;
  /// of the significand; exponents of the least number and beyond the largest
  int bits, least, most;
};
constexpr Format formats[] = {{vt::f64, 53, -1074, 1024},
                              {vt::f32, 24, -149, 128},
                              {vt::f16, 11, -24, 16},
                              {vt::bf16, 8, -133, 128}};

TEST(IntegerPowers, OverTheWholeRange) {
  for (const Format& f : formats)
    for (const int n : {-1, -2, -3, -4, -5, -8, -16, -17, -100, 2, 3, 7, 16, 17, 100}) {
      // Results from below the least number to beyond the largest.
      std::vector<double> x;
      for (int k = f.least - 3; k <= f.most + 2; k += std::max(1, (f.most - f.least) / 300)) {
        const double base = std::exp2(static_cast<double>(k) / n);
        for (const double v : {base, -base * 1.01}) x.push_back(v);
      }
      for (const double v : {0.0, -0.0, inf, -inf, nan, 1.0, -1.0}) x.push_back(v);
      const auto count = static_cast<std::int64_t>(x.size());
      const Tensor at = vt::tensor(x, {count}).astype(f.dtype);
      const auto exact = at.astype(vt::f64).to_vector<double>();
      for (const auto& [way, result] :
           in_all_ways([n](const Tensors& t) { return vt::integer_pow(t[0], n); }, {at})) {
        const auto got = result.astype(vt::f64).to_vector<double>();
        for (std::size_t i = 0; i < x.size(); ++i) {
          const double power = std::pow(exact[i], n);
          const double want =
              vt::full({}, power, vt::f64).astype(f.dtype).astype(vt::f64).item<double>();
          const double off = ulps_off(got[i], want, f.bits, f.least);
          // At the edge of the range one rounds to infinity, one does not.
          const bool edge = std::fabs(power) >= std::ldexp(1 - std::ldexp(32.0, -f.bits), f.most) &&
                            std::fabs(power) < std::ldexp(1.0001, f.most);
          EXPECT_TRUE(off <= (std::abs(n) > 16 ? 1 : 12) || edge)
              << exact[i] << " to the power of " << n << " in " << vt::name_of(f.dtype) << ", "
              << way << ", is " << got[i] << ", not " << want;
          EXPECT_TRUE(edge || std::isnan(want) || std::signbit(got[i]) == std::signbit(want))
              << exact[i] << " to the power of " << n;
        }
      }
    }
}

TEST(IntegerPowers, OfTheLargestExponents) {
  constexpr int most = std::numeric_limits<int>::max(), least = std::numeric_limits<int>::min();
  const std::vector<double> x = {1, -1,  1 + 1e-7, 1 - 1e-7, -1 - 1e-7, 0.5,
                                 2, 0.0, -0.0,     inf,      -inf};
  for (const int n : {most, least, most - 1, least + 1})
    for (const auto& [way, result] : in_all_ways(
             [n](const Tensors& t) { return vt::integer_pow(t[0], n); }, {vt::tensor(x, {11})})) {
      const auto got = result.to_vector<double>();
      for (std::size_t i = 0; i < x.size(); ++i) {
        const double want = std::pow(x[i], n);
        EXPECT_LE(ulps_off(got[i], want, 53, -1074), 1)
            << x[i] << " to the power of " << n << ", " << way << ", is " << got[i];
        EXPECT_EQ(std::signbit(got[i]), std::signbit(want)) << x[i] << " to the power of " << n;
      }
    }
  const Tensor slopes = vt::grad([](Tensor t) { return vt::sum(vt::integer_pow(t, least)); })(
      vt::tensor({-1.0, 1 + 1e-9}));
  EXPECT_EQ(slopes.to_vector<double>()[0], -static_cast<double>(least));
  const double steep = least * std::pow(1 + 1e-9, least) / (1 + 1e-9);
  EXPECT_LE(ulps_off(slopes.to_vector<double>()[1], steep, 53, -1074), 4);
}

TEST(IntegerPowers, OfComplexNumbers) {
  const auto re = vt::tensor({3.0, -1e-70, 1e80, 0.5, 1e155}),
             im = vt::tensor({4.0, 1e-70, 1e80, -2.0, -1e155});
  for (const int n : {-1, -2, -3, -4}) {
    const Tensor z = vt::complex(re, im), power = vt::integer_pow(z, n);
    const auto x = vt::real(power).to_vector<double>(), y = vt::imag(power).to_vector<double>();
    const std::vector<std::complex<long double>> exact = {
        {3, 4}, {-1e-70L, 1e-70L}, {1e80L, 1e80L}, {0.5L, -2}, {1e155L, -1e155L}};
    for (std::size_t i = 0; i < exact.size(); ++i) {
      std::complex<long double> want = 1;
      for (int k = 0; k < -n; ++k) want /= exact[i];
      const auto size = static_cast<double>(std::abs(want));
      EXPECT_LE(std::hypot(x[i] - static_cast<double>(want.real()),
                           y[i] - static_cast<double>(want.imag())),
                1e-14 * size + 2e-323)
          << i << " to " << n;
    }
  }
}

// --- interpolation -------------------------------------------------------------------------------

TEST(Interpolation, BesideInfinitiesAsNumPyHasIt) {
  const Tensor at = vt::tensor({0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0});
  const Tensor to = vt::tensor({1.0, 2.0, inf, 4.0, 6.0, -inf, nan});
  const std::vector<double> x = {-1, 0, 0.5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, nan};
  const std::vector<double> want = {1, 1, 1.5, 2, inf, inf, inf, 6, -inf, -inf, nan, nan, nan, nan};
  for (const auto& [way, result] : in_all_ways(
           [&](const Tensors& t) { return vt::interp(t[0], at, to); }, {vt::tensor(x, {14})})) {
    const auto got = result.to_vector<double>();
    for (std::size_t i = 0; i < x.size(); ++i)
      EXPECT_EQ(ulps_off(got[i], want[i], 53, -1074), 0)
          << x[i] << ", " << way << ", is " << got[i];
  }
  // Points that lie infinitely far, and a jump at the first one.
  const Tensor far = vt::tensor({-inf, 0.0, 1.0, inf});
  const auto beyond =
      vt::interp(vt::tensor({-5.0, 0.5, 7.0}), far, vt::tensor({9.0, 1.0, 3.0, 8.0}))
          .to_vector<double>();
  EXPECT_EQ(beyond, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(vt::interp(vt::tensor(0.0), vt::tensor({0.0, 0.0, 1.0}), vt::tensor({5.0, 7.0, 9.0}))
                .item<double>(),
            7);
}

TEST(Interpolation, SlopesBesideInfinitiesAreThoseOfTheNumbers) {
  const Tensor at = vt::tensor({0.0, 1.0, 2.0, 3.0}), to = vt::tensor({1.0, 3.0, inf, 4.0}),
               x = vt::tensor({0.0, 0.25, 1.0});
  const auto by_x =
      vt::grad([&](Tensor t) { return vt::sum(vt::interp(t, at, to)); })(vt::tensor({0.0, 0.25}))
          .to_vector<double>();
  EXPECT_EQ(by_x, (std::vector<double>{2, 2}));
  const auto by_value =
      vt::grad([&](Tensor t) { return vt::sum(vt::interp(x, at, t)); })(to).to_vector<double>();
  EXPECT_EQ(by_value, (std::vector<double>{1.75, 1.25, 0, 0}));
  const auto by_place =
      vt::grad([&](Tensor t) { return vt::sum(vt::interp(x, t, to)); })(at).to_vector<double>();
  for (double d : by_place) EXPECT_TRUE(std::isfinite(d)) << d;
}

TEST(Slopes, OfPolygammaOfOrderZeroFarOut) {
  const Tensor x = vt::tensor({20.0, 75.5, 1e4, 1e15}), n = vt::zeros({4}, vt::f64);
  const auto f = [&](Tensor t) { return vt::sum(vt::polygamma(n, t)); };
  const std::vector<double> want = vt::polygamma(1.0, x).to_vector<double>();
  for (const Tensor& got :
       {vt::grad(f)(x), vt::jit(vt::grad(f))(x),
        vt::vmap(vt::grad([](Tensor t) { return vt::polygamma(0.0, t); }))(x)}) {
    for (std::size_t i = 0; i < want.size(); ++i)
      EXPECT_NEAR(got.to_vector<double>()[i], want[i], 1e-15 * want[i]) << i;
  }
}

// The density at the ends is infinite, a number or 0, as the exponent there is.
TEST(Slopes, OfBetaincAtTheEnds) {
  const Tensor a = vt::tensor({1.0, 0.5, 2.0, 3.0, 3.0, 3.0}),
               b = vt::tensor({2.0, 2.0, 2.0, 1.0, 0.5, 2.0});
  const Tensor x = vt::tensor({0.0, 0.0, 0.0, 1.0, 1.0, 1.0});
  const auto f = [](Tensor a, Tensor b, Tensor t) { return vt::sum(vt::betainc(a, b, t)); };
  const std::vector<double> want = {2, inf, 0, 3, inf, 0};
  EXPECT_EQ(vt::grad<2>(f)(a, b, x).to_vector<double>(), want);
  EXPECT_EQ(vt::jit(vt::grad<2>(f))(a, b, x).to_vector<double>(), want);
  EXPECT_EQ(vt::vmap(vt::grad<2>(f))(a, b, x).to_vector<double>(), want);
}

// Narrow floats are computed in f32 and rounded once.
TEST(Activations, OfNarrowFloatsAreRoundedOnce) {
  for (const vt::DType dtype : {vt::f16, vt::bf16}) {
    const Tensor x = vt::tensor(
                         {-17.5, -16.90625, -14.1015625, -1.8203125, -0.0810546875, 0.3, 2.7})
                         .astype(dtype),
                 wide = x.astype(vt::f32);
    for (const auto f :
         {+[](Tensor t) { return vt::silu(t); }, +[](Tensor t) { return vt::selu(t); }}) {
      const std::vector<float> want = f(wide).astype(dtype).to_vector<float>();
      EXPECT_EQ(f(x).dtype(), dtype);
      EXPECT_EQ(f(x).to_vector<float>(), want);
      EXPECT_EQ(vt::jit(f)(x).to_vector<float>(), want);
      EXPECT_EQ(vt::vmap(f)(x).to_vector<float>(), want);
    }
  }
}

// Slopes that are made of the rounded result, as y (1 − y), have no digit left in the tail where y
// is 1. s' = e/(1 + e)² with e = exp(−|x|), and s'' = −s' tanh(x/2), which is a difference: it is
// held to units in the last place of its larger part.
TEST(Activations, SlopesOfSigmoidKeepBothTails) {
  const auto first = [](Tensor x) {
    return vt::jvp([](Tensor t) { return vt::sigmoid(t); }, x, vt::ones_like(x)).second;
  };
  const auto second = [first](Tensor x) { return vt::jvp(first, x, vt::ones_like(x)).second; };
  for (const vt::DType dtype : {vt::f32, vt::f64}) {
    const double epsilon = dtype == vt::f32 ? 0x1p-23 : 0x1p-52;
    std::vector<double> at;
    for (double x : {0.0, 0.25, 1.0, 3.0, 9.0, 17.0, 40.0, 80.0, 300.0, 700.0, 1000.0})
      if (dtype == vt::f64 || x <= 80) at.insert(at.end(), {x, -x});
    const Tensor x = vt::tensor(at).astype(dtype);
    const auto check = [&](const char* mode, auto f, auto g) {
      const auto slopes = f(x).astype(vt::f64).template to_vector<double>(),
                 curvatures = g(x).astype(vt::f64).template to_vector<double>();
      for (std::size_t i = 0; i < at.size(); ++i) {
        const long double e = std::exp(-std::abs(static_cast<long double>(at[i]))),
                          slope = e / ((1 + e) * (1 + e)),
                          curvature = -slope * std::tanh(static_cast<long double>(at[i]) / 2);
        const double least = dtype == vt::f32 ? 0x1p-149 : 0x1p-1074;
        EXPECT_NEAR(slopes[i], static_cast<double>(slope),
                    4 * (epsilon * static_cast<double>(slope) + least))
            << mode << " " << vt::name_of(dtype) << " at " << at[i];
        EXPECT_NEAR(curvatures[i], static_cast<double>(curvature),
                    4 * (epsilon * static_cast<double>(slope / (1 + e)) + least))
            << mode << " " << vt::name_of(dtype) << " at " << at[i];
      }
    };
    check("as it is", first, second);
    check("jit", vt::jit(first), vt::jit(second));
    check("vmap", vt::vmap(first), vt::vmap(second));
  }
}

}  // namespace
