// Distributions drawn by rejection: many draws of each against its distribution function,
// implicit derivatives, lanes, refusals.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;
namespace rnd = vt::random;

/// Draws of each distribution. The interpreter, which runs one element's loop after the other,
/// makes fewer.
const std::int64_t many = vt_test::forced_backend() == "interpreter" ? 1'000 : 400'000;

/// Of those that differ from another only in their parameters.
const std::int64_t some = many / 5;

/// `of_enough`, which suits that many draws, or as many standard errors for fewer.
double tolerance(double of_enough, std::int64_t n, std::int64_t enough) {
  return of_enough * std::max(1.0, std::sqrt(static_cast<double>(enough) / static_cast<double>(n)));
}

/// The largest distance between the draws' distribution and `cdf`, times √n: beyond 1.95 with
/// probability 0.001.
double kolmogorov_smirnov(const Tensor& draws, const std::function<Tensor(Tensor)>& cdf) {
  const Tensor sorted = vt::sort(draws.astype(vt::f64));
  const double n = static_cast<double>(draws.size());
  const Tensor place = vt::arange(draws.size(), vt::f64), f = cdf(sorted);
  return std::sqrt(n) * vt::max(vt::maximum(f - place / n, (place + 1.0) / n - f)).item<double>();
}

struct Family {
  const char* name;
  std::function<Tensor(Tensor key, vt::DType)> draw;
  std::function<Tensor(Tensor)> cdf;
  double mean, variance;  ///< NaN: not looked at
};
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

Tensor t_cdf(const Tensor& x, double df) {
  const Tensor tail = 0.5 * vt::betainc(0.5 * df, 0.5, df / (df + x * x));
  return vt::where(x < 0.0, tail, 1.0 - tail);
}

/// Φ((x/m − 1)/√x) + exp(2/m) Φ(−(x/m + 1)/√x), the second as it does not overflow.
std::function<Tensor(Tensor)> wald_cdf(double m) {
  return [m](Tensor x) {
    const Tensor root = vt::sqrt(x), below = (x / m - 1.0) / root;
    return vt::special::ndtr(below) +
           0.5 * vt::exp(-0.5 * below * below) *
               vt::special::erfcx((x / m + 1.0) / root / std::numbers::sqrt2);
  };
}

const std::vector<Family>& families() {
  static const std::vector<Family> all = {
      {"gamma", [](Tensor k, vt::DType d) { return rnd::gamma(k, {many}, 2.5, d); },
       [](Tensor x) { return vt::igamma(2.5, x); }, 2.5, 2.5},
      {"gamma_below_1", [](Tensor k, vt::DType d) { return rnd::gamma(k, {many}, 0.3, d); },
       [](Tensor x) { return vt::igamma(0.3, x); }, 0.3, 0.3},
      {"gamma_large", [](Tensor k, vt::DType d) { return rnd::gamma(k, {many}, 300.0, d); },
       [](Tensor x) { return vt::igamma(300.0, x); }, 300, 300},
      {"gamma_tiny", [](Tensor k, vt::DType d) { return rnd::gamma(k, {some}, 0.1, d); },
       [](Tensor x) { return vt::igamma(0.1, x); }, 0.1, 0.1},
      {"gamma_huge", [](Tensor k, vt::DType d) { return rnd::gamma(k, {some}, 1e4, d); },
       [](Tensor x) { return vt::igamma(1e4, x); }, 1e4, 1e4},
      {"loggamma_tiny", [](Tensor k, vt::DType d) { return rnd::loggamma(k, {some}, 1e-3, d); },
       // igamma(a, x) is xᵃ for what of x is no number
       [](Tensor x) {
         return vt::where(x < -600.0, vt::exp(1e-3 * x) * 1.000577549,
                          vt::igamma(1e-3, vt::exp(x)));
       },
       nan, nan},
      {"loggamma", [](Tensor k, vt::DType d) { return rnd::loggamma(k, {many}, 1.7, d); },
       [](Tensor x) { return vt::igamma(1.7, vt::exp(x)); }, 0.20854787, 0.80},
      {"beta", [](Tensor k, vt::DType d) { return rnd::beta(k, {many}, 0.7, 2.2, d); },
       [](Tensor x) { return vt::betainc(0.7, 2.2, x); }, 0.7 / 2.9, 0.7 * 2.2 / (2.9 * 2.9 * 3.9)},
      {"beta_of_ends", [](Tensor k, vt::DType d) { return rnd::beta(k, {some}, 0.2, 0.6, d); },
       [](Tensor x) { return vt::betainc(0.2, 0.6, x); }, 0.25, 0.1875 / 1.8},
      {"beta_narrow", [](Tensor k, vt::DType d) { return rnd::beta(k, {some}, 2000.0, 3.0, d); },
       [](Tensor x) { return vt::betainc(2000.0, 3.0, x); }, 2000.0 / 2003, nan},
      {"dirichlet",
       [](Tensor k, vt::DType d) {
         return vt::take(rnd::dirichlet(k, {many}, vt::tensor({1.5, 0.5, 2.0}), d), vt::tensor(0),
                         1);
       },
       [](Tensor x) { return vt::betainc(1.5, 2.5, x); }, 1.5 / 4, 1.5 * 2.5 / (16 * 5)},
      {"chisquare", [](Tensor k, vt::DType d) { return rnd::chisquare(k, {many}, 3.0, d); },
       [](Tensor x) { return vt::igamma(1.5, x / 2.0); }, 3, 6},
      {"t", [](Tensor k, vt::DType d) { return rnd::t(k, {many}, 5.0, d); },
       [](Tensor x) { return t_cdf(x, 5); }, 0, 5.0 / 3},
      {"t_heavy", [](Tensor k, vt::DType d) { return rnd::t(k, {some}, 0.5, d); },
       [](Tensor x) { return t_cdf(x, 0.5); }, nan, nan},
      {"t_nearly_normal", [](Tensor k, vt::DType d) { return rnd::t(k, {some}, 1e4, d); },
       [](Tensor x) {
         return vt::special::ndtr(x) - vt::exp(-0.5 * x * x) * (x * x * x + x) / 1e5 / 1.0026513;
       },
       0, nan},
      {"f_heavy", [](Tensor k, vt::DType d) { return rnd::f(k, {some}, 0.5, 0.7, d); },
       [](Tensor x) { return vt::betainc(0.25, 0.35, 0.5 * x / (0.5 * x + 0.7)); }, nan, nan},
      {"f", [](Tensor k, vt::DType d) { return rnd::f(k, {many}, 4.0, 7.0, d); },
       [](Tensor x) { return vt::betainc(2.0, 3.5, 4.0 * x / (4.0 * x + 7.0)); }, 7.0 / 5, nan},
      {"generalized_normal",
       [](Tensor k, vt::DType d) { return rnd::generalized_normal(k, {many}, 3.0, d); },
       [](Tensor x) {
         return 0.5 + 0.5 * vt::sign(x) * vt::igamma(1.0 / 3, vt::pow(vt::abs(x), 3.0));
       },
       0, std::tgamma(1.0) / std::tgamma(1.0 / 3)},
      {"ball",
       [](Tensor k, vt::DType d) {
         return vt::sqrt(vt::sum(vt::square(rnd::ball(k, {many}, 3, 2.0, d).astype(vt::f64)), -1));
       },
       [](Tensor r) { return r * r * r; }, 0.75, 0.0375},
      {"maxwell", [](Tensor k, vt::DType d) { return rnd::maxwell(k, {many}, d); },
       [](Tensor x) { return vt::igamma(1.5, x * x / 2.0); }, 2 * std::sqrt(2 / std::numbers::pi),
       3 - 8 / std::numbers::pi},
      {"double_sided_maxwell",
       [](Tensor k, vt::DType d) { return rnd::double_sided_maxwell(k, {many}, 1.0, 2.0, d); },
       [](Tensor x) {
         return 0.5 + 0.5 * vt::sign(x - 1.0) * vt::igamma(1.5, vt::square((x - 1.0) / 2.0) / 2.0);
       },
       1, 12},
      {"wald", [](Tensor k, vt::DType d) { return rnd::wald(k, {many}, 1.5, d); }, wald_cdf(1.5),
       1.5, 1.5 * 1.5 * 1.5},
      {"wald_small", [](Tensor k, vt::DType d) { return rnd::wald(k, {some}, 0.02, d); },
       wald_cdf(0.02), 0.02, 8e-6},
      {"wald_large", [](Tensor k, vt::DType d) { return rnd::wald(k, {some}, 300.0, d); },
       wald_cdf(300), nan, nan},
  };
  return all;
}

class Families : public testing::TestWithParam<std::size_t> {};

TEST_P(Families, KolmogorovSmirnovAndMoments) {
  const Family& family = families()[GetParam()];
  for (vt::DType d : {vt::f32, vt::f64}) {
    const Tensor x = family.draw(rnd::key(20261121), d);
    EXPECT_LT(kolmogorov_smirnov(x, family.cdf), 1.95) << vt::name_of(d);
    const Tensor wide = x.astype(vt::f64);
    const double n = static_cast<double>(x.size());
    if (!std::isnan(family.variance)) {
      EXPECT_NEAR(vt::mean(wide).item<double>(), family.mean,
                  4 * std::sqrt(family.variance / n) + 1e-6)
          << vt::name_of(d);
      double near = 0.05 * family.variance;
      if (n < 20'000) {  // as far off as the fourth moment says
        const Tensor centred = wide - vt::mean(wide);
        near = std::max(
            near, 4 * std::sqrt(vt::mean(vt::square(vt::square(centred))).item<double>() / n));
      }
      EXPECT_NEAR(vt::var(wide).item<double>(), family.variance, near) << vt::name_of(d);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Each, Families, testing::Range<std::size_t>(0, families().size()),
                         [](const auto& info) { return std::string(families()[info.param].name); });

// --- counts --------------------------------------------------------------------------------------

/// Pearson's statistic in deviations, see random_test; classes of fewer than ten expected draws are
/// joined to the next.
double chi_square(const Tensor& draws, const std::function<double(std::int64_t)>& mass,
                  std::int64_t most) {
  std::vector<double> counts(static_cast<std::size_t>(most) + 1, 0.0);
  for (std::int64_t v : draws.to_vector<std::int64_t>())
    counts.at(static_cast<std::size_t>(std::clamp<std::int64_t>(v, 0, most))) += 1;
  const double n = static_cast<double>(draws.size());
  double sum = 0, seen = 0, wanted = 0, before = 0, classes = 0;
  for (std::int64_t k = 0; k <= most; ++k) {
    const double p = k == most ? 1 - before : mass(k);
    before += p;
    seen += counts[k];
    wanted += n * p;
    if (wanted < 10 && k != most) continue;
    if (wanted > 0) sum += (seen - wanted) * (seen - wanted) / wanted, classes += 1;
    seen = wanted = 0;
  }
  const double freedom = classes - 1;
  return (std::cbrt(sum / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

// The logarithm of a gamma variable is a number however small a is, and so is what is made of it.
TEST(Families, OfTinyParametersAreNumbers) {
  for (vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64}) {
    const double tiny = d == vt::f64 ? 1e-310 : 1e-40;
    for (double a : {1e-4, tiny}) {
      const Tensor x = rnd::loggamma(rnd::key(3), {1'000}, a, d),
                   y = rnd::beta(rnd::key(3), {1'000}, a, a, d);
      EXPECT_TRUE(vt::all(vt::isfinite(x)).item<bool>()) << vt::name_of(d) << " " << a;
      EXPECT_TRUE(vt::all((y >= 0.0) & (y <= 1.0)).item<bool>()) << vt::name_of(d) << " " << a;
    }
    EXPECT_EQ(rnd::loggamma(rnd::key(3), {}, 0.0, d).astype(vt::f64).item<double>(),
              -std::numeric_limits<double>::infinity());
  }
}

TEST(Families, BallsHoldTheirDrawsInEveryDtype) {
  for (vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64})
    for (std::int64_t n : {1, 3}) {
      const Tensor x = rnd::ball(rnd::key(11), {many / 10}, n, 2.0, d).astype(vt::f64);
      EXPECT_LE(vt::max(vt::sum(x * x, -1)).item<double>(), 1.0 + 1e-15)
          << vt::name_of(d) << " " << n;
    }
}

TEST(Counts, Poisson) {
  for (double mean : {0.7, 4.0, 9.99, 10.0, 45.5}) {
    const auto mass = [&](std::int64_t k) {
      return std::exp(static_cast<double>(k) * std::log(mean) - mean -
                      std::lgamma(static_cast<double>(k) + 1));
    };
    const auto most = static_cast<std::int64_t>(mean + 5 * std::sqrt(mean) + 3);
    EXPECT_LT(std::abs(chi_square(rnd::poisson(rnd::key(5), {many}, mean), mass, most)), 3.4)
        << mean;
  }
  const Tensor large = rnd::poisson(rnd::key(6), {many}, 1e6, vt::f64);
  EXPECT_NEAR(vt::mean(large).item<double>(), 1e6, 4e3 / std::sqrt(static_cast<double>(many)));
  EXPECT_NEAR(vt::var(large).item<double>(), 1e6, tolerance(5e4, many, 20'000));
  EXPECT_EQ(rnd::poisson(rnd::key(1), {3}, vt::tensor({0.0, -1.0, nan})).to_vector<int>(),
            (std::vector<int>{0, -1, -1}));
  EXPECT_TRUE(std::isnan(rnd::poisson(rnd::key(1), {}, -1.0, vt::f32).item<double>()));
}

TEST(Counts, Binomial) {
  const std::pair<double, double> cases[] = {{5, 0.3},    {40, 0.1},    {40, 0.5},
                                             {100, 0.93}, {1000, 0.02}, {200, 0.4}};
  for (const auto& [n, p] : cases) {
    const auto mass = [&, n = n, p = p](std::int64_t i) {
      const double k = static_cast<double>(i);
      return k > n ? 0.0
                   : std::exp(std::lgamma(n + 1) - std::lgamma(k + 1) - std::lgamma(n - k + 1) +
                              k * std::log(p) + (n - k) * std::log1p(-p));
    };
    EXPECT_LT(std::abs(chi_square(rnd::binomial(rnd::key(5), {many}, n, p), mass,
                                  static_cast<std::int64_t>(n))),
              3.4)
        << n << " " << p;
  }
  const Tensor edges = rnd::binomial(rnd::key(1), {5}, vt::tensor({10.0, 10.0, 0.0, -1.0, 10.0}),
                                     vt::tensor({0.0, 1.0, 0.5, 0.5, 1.5}));
  EXPECT_EQ(edges.to_vector<int>(), (std::vector<int>{0, 10, 0, -1, -1}));
}

// Counts beyond 2^44, where k and the mean agree in nearly all digits: in deviations from the mean
// they are normal numbers but for 1/(6 √mean).
TEST(Counts, OfLargeMeansAreAsWide) {
  const std::int64_t draws = many / 20;
  const double enough = static_cast<double>(draws);
  const auto check = [&](const Tensor& counts, double mean, double variance) {
    const Tensor z = (counts.astype(vt::f64) - mean) / std::sqrt(variance);
    EXPECT_LT(kolmogorov_smirnov(z, [](Tensor t) { return vt::special::ndtr(t); }), 1.95);
    EXPECT_NEAR(vt::mean(z).item<double>(), 0, 4 / std::sqrt(enough));
    EXPECT_NEAR(vt::var(z).item<double>(), 1, 4 * std::sqrt(2 / enough));
  };
  for (double mean : {1e7, 1e12, 1e14, 1e16, 1e18, 1e24}) {
    SCOPED_TRACE(mean);
    check(rnd::poisson(rnd::key(5), {draws}, mean, mean < 1e18 ? vt::i64 : vt::f64), mean, mean);
  }
  for (double n : {1e8, 0x1p44, 1e15, 1e17, 0x1p64})
    for (double p : {0.5, 0.001, 0.8}) {
      SCOPED_TRACE(n);
      SCOPED_TRACE(p);
      if (n * p < 1e7) continue;
      check(rnd::binomial(rnd::key(6), {draws}, n, p, n < 1e18 ? vt::i64 : vt::f64), n * p,
            n * p * (1 - p));
    }
  EXPECT_TRUE(std::isnan(rnd::binomial(rnd::key(1), {}, 1e20, 0.5, vt::f64).item<double>()));
  EXPECT_EQ(rnd::binomial(rnd::key(1), {}, 1e20, 0.5, vt::i64).item<std::int64_t>(), -1);
}

TEST(Counts, Geometric) {
  const auto mass = [](std::int64_t k) {
    return k < 1 ? 0.0 : 0.2 * std::pow(0.8, static_cast<double>(k - 1));
  };
  EXPECT_LT(std::abs(chi_square(rnd::geometric(rnd::key(5), {many}, 0.2), mass, 60)), 3.4);
  EXPECT_EQ(rnd::geometric(rnd::key(1), {3}, vt::tensor({1.0, 0.0, 2.0})).to_vector<int>(),
            (std::vector<int>{1, -1, -1}));
}

TEST(Counts, Multinomial) {
  const std::int64_t draws = many / 10;
  const Tensor x =
      rnd::multinomial(rnd::key(5), {draws}, 20, vt::tensor({1.0, 2.0, 3.0, 4.0}), vt::f64);
  EXPECT_EQ(x.shape(), (vt::Shape{draws, 4}));
  EXPECT_EQ(vt::max(vt::abs(vt::sum(x, -1) - 20.0)).item<double>(), 0);
  const auto mean = vt::mean(x, 0).to_vector<double>();
  for (std::size_t i = 0; i < 4; ++i)
    EXPECT_NEAR(mean[i], 2.0 * static_cast<double>(i + 1),
                4 * std::sqrt(5.0 / static_cast<double>(draws)));
  // Of two classes the counts go against each other.
  const Tensor centred = x - vt::mean(x, 0, true);
  const double covariance =
      vt::mean(vt::take(centred, vt::tensor(1), 1) * vt::take(centred, vt::tensor(3), 1))
          .item<double>();
  EXPECT_NEAR(covariance, -20 * 0.2 * 0.4, 12 / std::sqrt(static_cast<double>(draws)));
}

// --- vectors and classes -------------------------------------------------------------------------

TEST(Vectors, MultivariateNormal) {
  const std::int64_t draws = many / 5;
  const Tensor mean = vt::tensor({1.0, -2.0, 0.5}),
               covariance = vt::tensor({{2.0, 0.5, 0.0}, {0.5, 1.0, -0.3}, {0.0, -0.3, 0.8}});
  const Tensor x = rnd::multivariate_normal(rnd::key(2), {draws}, mean, covariance, vt::f64),
               centred = x - mean;
  const double error = 6 / std::sqrt(static_cast<double>(draws));
  vt_test::expect_close(vt::mean(x, 0), mean, {.absolute = error});
  vt_test::expect_close(vt::matmul(vt::transpose(centred), centred) / static_cast<double>(draws),
                        covariance, {.absolute = 2 * error});
  // Whitened, each coordinate is normal.
  const Tensor white = vt::linalg::solve(vt::linalg::cholesky(covariance), vt::transpose(centred));
  EXPECT_LT(
      kolmogorov_smirnov(white.reshape({3 * draws}), [](Tensor t) { return vt::special::ndtr(t); }),
      1.95);
  // Batches of means and covariances, and derivatives by both.
  const Tensor two = vt::stack({covariance, 4.0 * covariance});
  EXPECT_EQ(rnd::multivariate_normal(rnd::key(1), {5, 2}, mean, two).shape(), (vt::Shape{5, 2, 3}));
  const auto f = [&](Tensor m, Tensor c) {
    return vt::sum(rnd::multivariate_normal(rnd::key(1), {}, m, c, vt::f64));
  };
  const auto [dm, dc] = vt::grad<0, 1>(f)(mean, covariance);
  vt_test::expect_close(dm, vt::ones({3}, vt::f64));
  EXPECT_TRUE(vt::all(vt::isfinite(dc)).item<bool>());
}

TEST(Vectors, Orthogonal) {
  const std::int64_t draws = many / 50;
  const Tensor q = rnd::orthogonal(rnd::key(3), {draws}, 3, vt::f64);
  vt_test::expect_close(vt::matmul(vt::swapaxes(q, 1, 2), q),
                        vt::broadcast_to(vt::eye(3, vt::f64), {draws, 3, 3}), {.absolute = 1e-13});
  // An element of a random direction in space is uniform (Archimedes).
  for (int row : {0, 2})
    for (int column : {0, 2}) {
      const Tensor element = vt::take(vt::take(q, vt::tensor(row), 1), vt::tensor(column), 1);
      EXPECT_LT(kolmogorov_smirnov(element, [](Tensor t) { return 0.5 * (t + 1.0); }), 1.95)
          << row << column;
    }
}

TEST(Vectors, CategoricalOfManyDraws) {
  const Tensor logits = vt::log(vt::tensor({0.1, 0.2, 0.3, 0.4}));
  const Tensor drawn = rnd::categorical(rnd::key(1), logits, {many / 10}, {});
  const auto mass = [](std::int64_t k) { return 0.1 * static_cast<double>(k + 1); };
  EXPECT_LT(std::abs(chi_square(drawn, mass, 3)), 3.4);
  EXPECT_EQ(rnd::categorical(rnd::key(1), vt::zeros({5, 3, 2}), {7}, {.axis = 1}).shape(),
            (vt::Shape{7, 5, 2}));
  // Without replacement: no class twice, the first one as likely as ever.
  const Tensor some = vt::vmap([&](Tensor k) {
    return rnd::categorical(k, logits, {3}, {.replace = false});
  })(rnd::split(rnd::key(4), many / 20));
  EXPECT_LT(std::abs(chi_square(vt::take(some, vt::tensor(0), 1), mass, 3)), 3.4);
  const Tensor a = vt::take(some, vt::tensor(0), 1), b = vt::take(some, vt::tensor(1), 1),
               c = vt::take(some, vt::tensor(2), 1);
  EXPECT_EQ(vt::sum((a == b) | (b == c) | (a == c)).item<int>(), 0);
}

// --- derivatives ---------------------------------------------------------------------------------

// The derivative of a draw x by a is −(∂P/∂a)/(∂P/∂x), so that of its mean by a is the mean's: 1
// for gamma.
TEST(Implicit, GammaAndItsKin) {
  const std::int64_t draws = many / 5;
  const double near = tolerance(0.03, draws, 4'000);
  for (double a : {0.4, 1.0, 6.0}) {
    const auto mean = [&](Tensor p) {
      return vt::mean(rnd::gamma(rnd::key(3), {draws}, p, vt::f64));
    };
    EXPECT_NEAR(vt::grad(mean)(vt::tensor(a)).item<double>(), 1, near) << a;
    const auto square = [&](Tensor p) {
      return vt::mean(vt::square(rnd::gamma(rnd::key(3), {draws}, p, vt::f64)));
    };
    EXPECT_NEAR(vt::grad(square)(vt::tensor(a)).item<double>(), 1 + 2 * a, near / 0.3 * (1 + 2 * a))
        << a;
    const auto logarithm = [&](Tensor p) {
      return vt::mean(rnd::loggamma(rnd::key(3), {draws}, p, vt::f64));
    };
    EXPECT_NEAR(vt::grad(logarithm)(vt::tensor(a)).item<double>(),
                vt::polygamma(1.0, a).item<double>(), near * vt::polygamma(1.0, a).item<double>())
        << a;
  }
  const auto beta = [&](Tensor a, Tensor b) {
    return vt::mean(rnd::beta(rnd::key(4), {draws}, a, b, vt::f64));
  };
  const auto [da, db] = vt::grad<0, 1>(beta)(vt::tensor(2.0), vt::tensor(3.0));
  EXPECT_NEAR(da.item<double>(), 3.0 / 25, 0.1 * near);
  EXPECT_NEAR(db.item<double>(), -2.0 / 25, 0.1 * near);
  const auto chi = [&](Tensor df) {
    return vt::mean(rnd::chisquare(rnd::key(4), {draws}, df, vt::f64));
  };
  EXPECT_NEAR(vt::grad(chi)(vt::tensor(3.0)).item<double>(), 1, near);
  // At one draw: along the curve P(a, x) = const.
  const Tensor a = vt::tensor(1.7), x = rnd::gamma(rnd::key(9), {}, a, vt::f64),
               p = vt::igamma(a, x);
  const double slope =
                   vt::grad([&](Tensor t) { return rnd::gamma(rnd::key(9), {}, t, vt::f64); })(a)
                       .item<double>(),
               h = 1e-5;
  EXPECT_NEAR(vt::igamma(a + h, x + h * slope).item<double>(), p.item<double>(), 1e-9);
  EXPECT_TRUE(std::isfinite(
      vt::grad(vt::grad([&](Tensor t) { return rnd::gamma(rnd::key(9), {}, t, vt::f64); }))(a)
          .item<double>()));
}

/// The derivatives of E[h(x)] with h(x) = 1/(1 + (x − 1)²) by each parameter.
struct Expectation {
  const char* name;
  std::function<Tensor(Tensor key, std::span<const Tensor> parameters, vt::DType)> draw;
  std::vector<double> parameters, slopes;
};
// mpmath 1.3: central differences of ∫ h(x) density(x) dx with 20 digits.
const std::vector<Expectation>& expectations() {
  static const std::int64_t n = std::min<std::int64_t>(20'000, many);
  using In = std::span<const Tensor>;
  using vt::DType;
  const auto truncated = [](Tensor k, In p, DType d) {
    return rnd::truncated_normal(k, {n}, p[0], p[1], d);
  };
  const auto gamma = [](Tensor k, In p, DType d) { return rnd::gamma(k, {n}, p[0], d); };
  const auto wald = [](Tensor k, In p, DType d) { return rnd::wald(k, {n}, p[0], d); };
  static const std::vector<Expectation> all = {
      {"uniform",
       [](Tensor k, In p, DType d) { return rnd::uniform(k, {n}, p[0], p[1], d); },
       {-1, 2},
       {0.143616320132, -0.0436163201273}},
      {"truncated_normal", truncated, {-0.5, 2}, {0.193901662157, -0.0142091092105}},
      {"truncated_normal_tail", truncated, {3, 4.5}, {-0.115396363687, -0.00106203898029}},
      {"truncated_normal_left", truncated, {-9.5, -9}, {6.43716099438e-5, 0.00182093858653}},
      {"truncated_normal_far", truncated, {40, 40.05}, {-2.67242326833e-5, -6.89731846721e-6}},
      {"lognormal",
       [](Tensor k, In p, DType d) { return rnd::lognormal(k, {n}, p[0], d); },
       {0.5},
       {-0.433419347435}},
      {"rayleigh",
       [](Tensor k, In p, DType d) { return rnd::rayleigh(k, {n}, p[0], d); },
       {2},
       {-0.245425790544}},
      {"weibull",
       [](Tensor k, In p, DType d) { return rnd::weibull(k, {n}, p[0], p[1], d); },
       {2, 1.5},
       {-0.192887949843, 0.0549669805594}},
      {"triangular",
       [](Tensor k, In p, DType d) { return rnd::triangular(k, {n}, p[0], p[1], p[2], d); },
       {-1, 0.5, 3},
       {0.0893776098113, 0.0639078518337, -0.0536265658862}},
      {"pareto",
       [](Tensor k, In p, DType d) { return rnd::pareto(k, {n}, p[0], d); },
       {3},
       {0.0775725058667}},
      {"gamma", gamma, {2.5}, {-0.200837444383}},
      {"gamma_below_1", gamma, {0.3}, {0.279847418128}},
      {"loggamma",
       [](Tensor k, In p, DType d) { return rnd::loggamma(k, {n}, p[0], d); },
       {1.7},
       {0.226634240515}},
      {"beta",
       [](Tensor k, In p, DType d) { return rnd::beta(k, {n}, p[0], p[1], d); },
       {0.7, 2.2},
       {0.154121709806, -0.0490695343081}},
      {"dirichlet",
       [](Tensor k, In p, DType d) {
         const Tensor alpha = vt::stack({p[0], p[1], vt::full({}, 2.0, p[0].dtype())});
         return vt::take(rnd::dirichlet(k, {n}, alpha, d), vt::tensor(0), 1);
       },
       {1.5, 0.5},
       {0.0937830750608, -0.05523262433}},
      {"chisquare",
       [](Tensor k, In p, DType d) { return rnd::chisquare(k, {n}, p[0], d); },
       {3},
       {-0.132382582797}},
      {"t",
       [](Tensor k, In p, DType d) { return rnd::t(k, {n}, p[0], d); },
       {5},
       {0.00515197725332}},
      {"f",
       [](Tensor k, In p, DType d) { return rnd::f(k, {n}, p[0], p[1], d); },
       {4, 7},
       {0.0155099603491, 0.0108090078811}},
      {"generalized_normal",
       [](Tensor k, In p, DType d) { return rnd::generalized_normal(k, {n}, p[0], d); },
       {3},
       {0.00272781022407}},
      // of two dimensions, the first
      {"ball",
       [](Tensor k, In p, DType d) {
         return vt::take(rnd::ball(k, {n}, 2, p[0], d), vt::tensor(0), 1);
       },
       {3},
       {0.00268500816641}},
      {"double_sided_maxwell",
       [](Tensor k, In p, DType d) { return rnd::double_sided_maxwell(k, {n}, p[0], p[1], d); },
       {1, 0.5},
       {0, -0.806646319722}},
      {"wald", wald, {1.5}, {-0.114432547061}},
      {"wald_large", wald, {6}, {-0.0114496215722}},
      // of the sum of both, which has mean ½ and variance 3
      {"multivariate_normal",
       [](Tensor k, In p, DType d) {
         const Tensor cross = vt::full({}, 0.25, p[1].dtype());
         const Tensor covariance = vt::stack({vt::stack({p[1], cross}), vt::stack({cross, p[2]})});
         const Tensor mean = vt::stack({p[0], vt::full({}, 0.1, p[0].dtype())});
         return vt::sum(rnd::multivariate_normal(k, {n}, mean, covariance, d), -1);
       },
       {0.4, 1.5, 1.0},
       {0.0499668440659, -0.0468968090527, -0.0468968090527}},
  };
  return all;
}

class Expectations : public testing::TestWithParam<std::size_t> {};

TEST_P(Expectations, HaveTheDerivativesOfTheirDistribution) {
  const Expectation& e = expectations()[GetParam()];
  for (vt::DType d : {vt::f32, vt::f64})
    for (std::size_t i = 0; i < e.parameters.size(); ++i) {
      const auto f = [&](Tensor parameter) {
        std::vector<Tensor> all;
        for (std::size_t k = 0; k < e.parameters.size(); ++k)
          all.push_back(k == i ? parameter : vt::tensor(e.parameters[k]).astype(d));
        const Tensor x = e.draw(rnd::key(20261127), all, d).astype(vt::f64);
        return 1.0 / (1.0 + vt::square(x - 1.0));
      };
      const Tensor at = vt::tensor(e.parameters[i]).astype(d);
      const auto slopes = [&](Tensor x) { return vt::jvp(f, x, vt::ones_like(x)).second; };
      const Tensor each = vt::jit(slopes)(at);
      const double error =
          std::sqrt(vt::var(each).item<double>() / static_cast<double>(each.size()));
      EXPECT_NEAR(vt::mean(each).item<double>(), e.slopes[i],
                  4 * error + 1e-5 * std::abs(e.slopes[i]))
          << vt::name_of(d) << " by parameter " << i;
    }
}

INSTANTIATE_TEST_SUITE_P(Each, Expectations, testing::Range<std::size_t>(0, expectations().size()),
                         [](const auto& info) {
                           return std::string(expectations()[info.param].name);
                         });

// Bounds that are infinite or far out have derivatives without NaN, and a draw follows a bound.
TEST(Expectations, OfBoundsFarOut) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  for (const auto& [low, high] : {std::pair{-infinity, infinity},
                                  {1.0, infinity},
                                  {-infinity, -1.0},
                                  {1e6, infinity},
                                  {-1e3, 1e3},
                                  {50.0, 1e200}}) {
    const auto f = [](Tensor a, Tensor b) {
      return vt::sum(rnd::truncated_normal(rnd::key(2), {100}, a, b, vt::f64));
    };
    const auto [da, db] = vt::grad<0, 1>(f)(vt::tensor(low), vt::tensor(high));
    EXPECT_TRUE(std::isfinite(da.item<double>())) << low << " " << high;
    EXPECT_TRUE(std::isfinite(db.item<double>())) << low << " " << high;
    if (low == 1e6) {
      EXPECT_NEAR(da.item<double>(), 100, 1e-8);
    }
    if (std::isinf(high)) {
      EXPECT_EQ(db.item<double>(), 0);
    }
  }
}

TEST(Expectations, HaveSecondDerivatives) {
  // x' = (1 − u) φ(a)/φ(x) by the lower bound, so x'' = x' (x x' − a)
  const auto truncated = [](Tensor a) {
    return rnd::truncated_normal(rnd::key(2), {50}, a, 5.0, vt::f64);
  };
  // x' = √(2π) x³ᐟ²/m² erfcx(y) with y = (√x/m + 1/√x)/√2
  const auto wald = [](Tensor m) { return rnd::wald(rnd::key(2), {50}, m, vt::f64); };
  const auto slopes = [](const auto& draw) {
    return [draw](Tensor x) { return vt::jvp(draw, x, vt::ones_like(x)); };
  };
  const Tensor one = vt::tensor(1.0);
  for (double a : {-1.0, 0.7, 4.5}) {
    const Tensor at = vt::tensor(a);
    const auto [first, second] = vt::jvp(slopes(truncated), at, one);
    const auto& [x, slope] = first;
    vt_test::expect_close(second.second, slope * (x * slope - a), {.relative = 1e-9});
  }
  const Tensor m = vt::tensor(1.5);
  const auto [first, second] = vt::jvp(slopes(wald), m, one);
  const auto& [x, slope] = first;
  const Tensor y = (vt::sqrt(x) / m + 1.0 / vt::sqrt(x)) / std::numbers::sqrt2;
  const Tensor change =
      (slope / m - 2.0 * x / (m * m) - slope / x) / (2.0 * vt::sqrt(x) * std::numbers::sqrt2);
  const Tensor log_slope = 2.0 * y - 2.0 * std::numbers::inv_sqrtpi / vt::special::erfcx(y);
  vt_test::expect_close(second.second, slope * (1.5 * slope / x - 2.0 / m + log_slope * change),
                        {.relative = 1e-9});
}

// Which elements stay depends on the rate in steps, of which no draw has a derivative.
TEST(Expectations, OfDropoutHaveNoDerivativeByTheRate) {
  const auto f = [](Tensor rate) {
    return vt::sum(vt::dropout(rnd::key(1), vt::ones({1000}), rate));
  };
  EXPECT_EQ(vt::grad(f)(vt::tensor(0.5)).item<double>(), 0);
}

// --- lanes ---------------------------------------------------------------------------------------

TEST(FamilyLanes, DrawWhatTheyWouldAlone) {
  const Tensor keys = rnd::split(rnd::key(8), 6).reshape({2, 3}),
               a = vt_test::random_tensor(vt::f64, {2, 3}, 0.2, 20, 1);
  const auto draw = [](Tensor k, Tensor p) {
    const auto [k1, k2] = rnd::split<2>(k);
    return vt::concatenate({rnd::gamma(k1, {5}, p, vt::f64), rnd::poisson(k2, {5}, p, vt::f64),
                            rnd::binomial(k2, {5}, 30.0, 1.0 / (1.0 + p), vt::f64)},
                           0);
  };
  const Tensor lanes = vt::vmap(vt::vmap(draw))(keys, a),
               compiled = vt::jit(vt::vmap(vt::vmap(draw)))(keys, a);
  for (std::int64_t i = 0; i < 2; ++i)
    for (std::int64_t j = 0; j < 3; ++j) {
      const Tensor alone = draw(keys[i][j], a[i][j]);
      vt_test::expect_close(Tensor(lanes[i][j]), alone, {.relative = 1e-13});
      vt_test::expect_close(Tensor(compiled[i][j]), alone, {.relative = 1e-13});
    }
  // A draw is a function of key and shape: not of the parameters' shapes.
  EXPECT_EQ(rnd::gamma(rnd::key(1), {4}, 2.0).to_vector<float>(),
            rnd::gamma(rnd::key(1), {4}, vt::full({4}, 2.0)).to_vector<float>());
  EXPECT_EQ(rnd::gamma(rnd::key(1), {2, 2}, 2.0).to_vector<float>(),
            rnd::gamma(rnd::key(1), {4}, 2.0).to_vector<float>());
  EXPECT_EQ(rnd::gamma(rnd::key(1), {0}, 2.0).shape(), (vt::Shape{0}));
  for (vt::DType d : {vt::f16, vt::bf16})
    EXPECT_EQ(rnd::beta(rnd::key(1), {3}, 2.0, 3.0, d).dtype(), d);
}

TEST(FamilyErrors, NameTheFunctionAndTheLine) {
  const auto says = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = vt_test::message(f);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("random_families_test.cpp:"), std::string::npos) << text;
  };
  says([] { (void)rnd::gamma(vt::ones({2}), {3}, 1.0); }, "vt::random::gamma: a key is one u64");
  says([] { (void)rnd::gamma(rnd::key(1), {3}, vt::ones({2})); },
       "vt::random::gamma: a parameter does not broadcast to [3]");
  says([] { (void)rnd::beta(rnd::key(1), {3}, 1.0, 1.0, vt::i32); }, "i32 is no float dtype");
  says([] { (void)rnd::poisson(rnd::key(1), {3}, 1.0, vt::bool_); }, "bool is no dtype of counts");
  says([] { (void)rnd::dirichlet(rnd::key(1), {3}, 1.0); }, "alpha needs an axis of classes");
  says([] { (void)rnd::multinomial(rnd::key(1), {3}, 5, vt::zeros({0})); }, "there are no classes");
  says([] { (void)rnd::ball(rnd::key(1), {3}, 0); }, "there is no ball in 0 dimensions");
  says([] { (void)rnd::multivariate_normal(rnd::key(1), {}, vt::ones({2}), vt::ones({3, 3})); },
       "the covariance must be [..., 2, 2]");
  says([] { (void)rnd::categorical(rnd::key(1), vt::zeros({3}), {5}, {.replace = false}); },
       "cannot draw 5 of 3 without replacement");
  says([] { (void)rnd::binomial(rnd::key(1), {-1}, 5, 0.5); }, "negative extent");
  EXPECT_TRUE(std::isnan(rnd::gamma(rnd::key(1), {}, -1.0).item<double>()));
  EXPECT_EQ(rnd::gamma(rnd::key(1), {}, 0.0).item<double>(), 0);
}

}  // namespace
