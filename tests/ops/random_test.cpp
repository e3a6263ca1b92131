// Random numbers: the bits of JAX's generator, every distribution against its distribution
// function, and that neither vmap nor jit nor the backend changes a draw.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <vt/vt.hpp>

#include "support/message.hpp"
#include "support/property.hpp"

namespace {

using vt_test::message;

namespace rnd = vt::random;

// jax 0.10.2, jax.random.key(42): bits, split, fold_in, uniform, normal (x64 enabled).
TEST(Random, SameAsJax) {
  const vt::Tensor k = rnd::key(42);
  EXPECT_EQ(
      rnd::bits(k, {5}).to_vector<std::uint32_t>(),
      (std::vector<std::uint32_t>{0x7d1c13a2, 0xae0730d9, 0x9dc3f9f9, 0x8f9ec1d7, 0x735d7315}));
  EXPECT_EQ(
      rnd::bits(k, {3}, vt::u64).to_vector<std::uint64_t>(),
      (std::vector<std::uint64_t>{0x6d3e048f1022172d, 0x3d7b32dadd083f4, 0x92fb20ea0f38d913}));
  const auto joined = [](std::uint64_t high, std::uint64_t low) { return high << 32 | low; };
  EXPECT_EQ(rnd::split(k, 3).to_vector<std::uint64_t>(),
            (std::vector<std::uint64_t>{joined(1832780943, 270669613), joined(64467757, 2916123636),
                                        joined(2465931498, 255383827)}));
  EXPECT_EQ(rnd::fold_in(k, 7).item<std::uint64_t>(), joined(2547012911, 1371500959));
  EXPECT_EQ(rnd::uniform(k, {3}).to_vector<float>(),
            (std::vector<float>{0.48870956897735596f, 0.6797971725463867f, 0.6162714958190918f}));
  EXPECT_EQ(rnd::uniform(k, {2}, vt::f64).to_vector<double>(),
            (std::vector<double>{0.4267275666499091, 0.015010069515314584}));
  const auto normal = rnd::normal(k, {2}, vt::f64).to_vector<double>();
  EXPECT_NEAR(normal[0], -0.18471174528191162, 1e-15);
  EXPECT_NEAR(normal[1], -2.169824560397754, 1e-14);
}

TEST(Random, ShapesKeepTheRowMajorStream) {
  const vt::Tensor k = rnd::key(1);
  EXPECT_EQ(rnd::bits(k, {2, 3, 4}).to_vector<std::uint32_t>(),
            rnd::bits(k, {24}).to_vector<std::uint32_t>());
  EXPECT_EQ(rnd::bits(k).item<std::uint32_t>(), rnd::bits(k, {1}).to_vector<std::uint32_t>()[0]);
  EXPECT_EQ(rnd::bits(k, {0, 3}).shape(), (vt::Shape{0, 3}));
  const auto wide = rnd::bits(k, {8}).to_vector<std::uint32_t>();
  const auto narrow = rnd::bits(k, {8}, vt::u8).to_vector<std::uint32_t>();
  for (std::size_t i = 0; i < 8; ++i) EXPECT_EQ(narrow[i], wide[i] & 0xff);
  const auto [a, b] = rnd::split<2>(k);
  EXPECT_NE(a.item<std::uint64_t>(), b.item<std::uint64_t>());
}

TEST(Random, LanesDrawWhatTheyWouldAlone) {
  const vt::Tensor keys = rnd::split(rnd::key(3), 6);
  const auto draw = [](vt::Tensor k) {
    const auto [a, b] = rnd::split<2>(k);
    return rnd::normal(a, {2, 5}, vt::f64) + rnd::uniform(b, {5}, -1.0, 2.0, vt::f64);
  };
  const vt::Tensor together = vt::vmap(draw)(keys), compiled = vt::jit(vt::vmap(draw))(keys);
  for (std::int64_t i = 0; i < 6; ++i) {
    EXPECT_EQ(vt::Tensor(together[i]).to_vector<double>(), draw(keys[i]).to_vector<double>());
    const auto x = vt::Tensor(compiled[i]).to_vector<double>(),
               y = draw(keys[i]).to_vector<double>();
    for (std::size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], y[j], 1e-14);
  }
  // Bits are the same to the last one, whatever runs them, also with two axes of lanes.
  const auto raw = [](vt::Tensor k) { return rnd::bits(k, {3}); };
  const vt::Tensor grid = keys.reshape({2, 3});
  EXPECT_EQ(vt::jit(vt::vmap(vt::vmap(raw)))(grid).to_vector<std::uint32_t>(),
            vt::vmap(raw)(keys).to_vector<std::uint32_t>());
  // A key that all lanes share gives all of them the same draw.
  const vt::Tensor shared = vt::vmap([&](vt::Tensor x) {
    return x * 0.0 + rnd::uniform(rnd::key(5), {}, vt::f64);
  })(vt::ones({4}, vt::f64));
  for (double v : shared.to_vector<double>())
    EXPECT_EQ(v, rnd::uniform(rnd::key(5), {}, vt::f64).item<double>());
}

TEST(Random, ParametersHaveDerivatives) {
  const auto f = [](vt::Tensor low, vt::Tensor high) {
    return vt::sum(rnd::uniform(rnd::key(9), {100}, low, high, vt::f64));
  };
  const auto [dl, dh] = vt::grad<0, 1>(f)(vt::tensor(1.0), vt::tensor(3.0));
  const auto u = rnd::uniform(rnd::key(9), {100}, vt::f64).to_vector<double>();
  double sum = 0;
  for (double v : u) sum += v;
  EXPECT_NEAR(dh.item<double>(), sum, 1e-10);
  EXPECT_NEAR(dl.item<double>(), 100 - sum, 1e-10);
}

// The largest distance between the draws' distribution and `cdf`, times √n: beyond 1.95 with
// probability 0.001.
double kolmogorov_smirnov(const vt::Tensor& draws, const std::function<double(double)>& cdf) {
  auto x = draws.to_vector<double>();
  std::sort(x.begin(), x.end());
  const double n = static_cast<double>(x.size());
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double f = cdf(x[i]);
    most = std::max({most, f - static_cast<double>(i) / n, static_cast<double>(i + 1) / n - f});
  }
  return most * std::sqrt(n);
}

/// Draws of each distribution; VT_DRAWS where the suite runs in a slow mode.
const auto many = static_cast<std::int64_t>(vt_test::environment("VT_DRAWS", 400'000));
double phi(double x) { return 0.5 * std::erfc(-x / std::numbers::sqrt2); }

struct Continuous {
  const char* name;
  std::function<vt::Tensor(vt::Tensor, vt::DType)> draw;
  std::function<double(double)> cdf;
};

class ContinuousDistributions : public testing::TestWithParam<Continuous> {};

TEST_P(ContinuousDistributions, KolmogorovSmirnov) {
  const Continuous& c = GetParam();
  // f32 draws have 2^23 values or more, fine beside the 10^-3 that 10^6 draws resolve.
  for (vt::DType d : {vt::f32, vt::f64})
    EXPECT_LT(kolmogorov_smirnov(c.draw(rnd::key(20261121), d), c.cdf), 1.95) << vt::name_of(d);
}

INSTANTIATE_TEST_SUITE_P(
    Each, ContinuousDistributions,
    testing::Values(
        Continuous{"uniform", [](vt::Tensor k, vt::DType d) { return rnd::uniform(k, {many}, d); },
                   [](double x) { return x; }},
        Continuous{"uniform_between",
                   [](vt::Tensor k, vt::DType d) { return rnd::uniform(k, {many}, -2.0, 6.0, d); },
                   [](double x) { return (x + 2) / 8; }},
        Continuous{"normal", [](vt::Tensor k, vt::DType d) { return rnd::normal(k, {many}, d); },
                   phi},
        Continuous{"truncated_normal",
                   [](vt::Tensor k, vt::DType d) {
                     return rnd::truncated_normal(k, {many}, -0.5, 2.0, d);
                   },
                   [](double x) { return (phi(x) - phi(-0.5)) / (phi(2.0) - phi(-0.5)); }},
        Continuous{
            "truncated_normal_tail",
            [](vt::Tensor k, vt::DType d) { return rnd::truncated_normal(k, {many}, 5.0, 6.0, d); },
            [](double x) { return (phi(-5) - phi(-x)) / (phi(-5) - phi(-6)); }},
        Continuous{"truncated_normal_left_tail",
                   [](vt::Tensor k, vt::DType d) {
                     return rnd::truncated_normal(k, {many}, -10.0, -9.0, d);
                   },
                   [](double x) { return (phi(x) - phi(-10)) / (phi(-9) - phi(-10)); }},
        Continuous{"truncated_normal_half",
                   [](vt::Tensor k, vt::DType d) {
                     return rnd::truncated_normal(k, {many}, 0.6, INFINITY, d);
                   },
                   [](double x) { return 1 - phi(-x) / phi(-0.6); }},
        Continuous{"truncated_normal_narrow",
                   [](vt::Tensor k, vt::DType d) {
                     return rnd::truncated_normal(k, {many}, -1e-9, 1e-9, d);
                   },
                   [](double x) { return (x + 1e-9) / 2e-9; }},
        // The mass beyond x is exp(−x²/2)/x (1 − 1/x² + 3/x⁴ − …).
        Continuous{"truncated_normal_far_out",
                   [](vt::Tensor k, vt::DType d) {
                     return rnd::truncated_normal(k, {many}, 40.0, INFINITY, d);
                   },
                   [](double x) {
                     const auto series = [](double t) {
                       const double y = 1 / (t * t);
                       return (1 - y * (1 - 3 * y * (1 - 5 * y * (1 - 7 * y)))) / t;
                     };
                     return 1 - std::exp(-(x - 40) * (x + 40) / 2) * series(x) / series(40);
                   }},
        Continuous{"weibull_small",
                   [](vt::Tensor k, vt::DType d) { return rnd::weibull(k, {many}, 2.0, 0.2, d); },
                   [](double x) { return -std::expm1(-std::pow(x / 2, 0.2)); }},
        Continuous{"pareto_heavy",
                   [](vt::Tensor k, vt::DType d) { return rnd::pareto(k, {many}, 0.3, d); },
                   [](double x) { return 1 - std::pow(x, -0.3); }},
        Continuous{
            "triangular_steep",
            [](vt::Tensor k, vt::DType d) {
              return rnd::triangular(k, {many}, 0.0, 0.001, 1.0, d);
            },
            [](double x) { return x < 0.001 ? x * x / 0.001 : 1 - (1 - x) * (1 - x) / 0.999; }},
        Continuous{"lognormal",
                   [](vt::Tensor k, vt::DType d) { return rnd::lognormal(k, {many}, 0.5, d); },
                   [](double x) { return phi(std::log(x) / 0.5); }},
        Continuous{"exponential",
                   [](vt::Tensor k, vt::DType d) { return rnd::exponential(k, {many}, d); },
                   [](double x) { return -std::expm1(-x); }},
        Continuous{"gumbel", [](vt::Tensor k, vt::DType d) { return rnd::gumbel(k, {many}, d); },
                   [](double x) { return std::exp(-std::exp(-x)); }},
        Continuous{"laplace", [](vt::Tensor k, vt::DType d) { return rnd::laplace(k, {many}, d); },
                   [](double x) { return x < 0 ? 0.5 * std::exp(x) : 1 - 0.5 * std::exp(-x); }},
        Continuous{"logistic",
                   [](vt::Tensor k, vt::DType d) { return rnd::logistic(k, {many}, d); },
                   [](double x) { return 1 / (1 + std::exp(-x)); }},
        Continuous{"cauchy", [](vt::Tensor k, vt::DType d) { return rnd::cauchy(k, {many}, d); },
                   [](double x) { return 0.5 + std::atan(x) / std::numbers::pi; }},
        Continuous{"rayleigh",
                   [](vt::Tensor k, vt::DType d) { return rnd::rayleigh(k, {many}, 2.0, d); },
                   [](double x) { return -std::expm1(-x * x / 8); }},
        Continuous{"weibull",
                   [](vt::Tensor k, vt::DType d) { return rnd::weibull(k, {many}, 2.0, 1.5, d); },
                   [](double x) { return -std::expm1(-std::pow(x / 2, 1.5)); }},
        Continuous{"pareto",
                   [](vt::Tensor k, vt::DType d) { return rnd::pareto(k, {many}, 3.0, d); },
                   [](double x) { return 1 - std::pow(x, -3); }},
        Continuous{
            "triangular",
            [](vt::Tensor k, vt::DType d) { return rnd::triangular(k, {many}, -1.0, 0.0, 3.0, d); },
            [](double x) { return x < 0 ? (x + 1) * (x + 1) / 4 : 1 - (3 - x) * (3 - x) / 12; }}),
    [](const auto& info) { return std::string(info.param.name); });

// Pearson's statistic over its degrees of freedom, in deviations: normal for many degrees, beyond
// 3.3 with probability 0.0005.
double chi_square(const std::vector<double>& counts, const std::vector<double>& probabilities,
                  double draws) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double wanted = probabilities[i] * draws;
    sum += (counts[i] - wanted) * (counts[i] - wanted) / wanted;
  }
  const double freedom = static_cast<double>(counts.size() - 1);
  // Wilson and Hilferty 1931
  return (std::cbrt(sum / freedom) - (1 - 2 / (9 * freedom))) / std::sqrt(2 / (9 * freedom));
}

std::vector<double> counted(const vt::Tensor& draws, std::int64_t low, std::size_t classes) {
  std::vector<double> counts(classes, 0.0);
  for (std::int64_t v : draws.to_vector<std::int64_t>())
    counts.at(static_cast<std::size_t>(v - low)) += 1;
  return counts;
}

TEST(Discrete, RandintOfEveryDtype) {
  using enum vt::DType;
  for (vt::DType d : {i8, i16, i32, i64, u8, u16, u32, u64}) {
    const std::int64_t low = vt::is_signed_int(d) ? -50 : 3;
    const vt::Tensor draws = rnd::randint(rnd::key(7), {many}, low, low + 97, d);
    EXPECT_EQ(draws.dtype(), d);
    EXPECT_LT(
        std::abs(chi_square(counted(draws, low, 97), std::vector<double>(97, 1.0 / 97), many)), 3.3)
        << vt::name_of(d);
  }
  // Ranges as wide as the dtype, in 64 equal parts.
  for (vt::DType d : {i32, i64, i8}) {
    const int bits = static_cast<int>(vt::size_of(d)) * 8;
    const std::int64_t least = -(std::int64_t{1} << (bits - 2)) * 2, most = -(least + 1);
    const vt::Tensor draws =
        rnd::randint(rnd::key(8), {many}, vt::tensor(least), vt::tensor(most), d);
    std::vector<double> counts(64, 0.0);
    for (std::int64_t v : draws.to_vector<std::int64_t>()) counts[(v >> (bits - 6)) + 32] += 1;
    std::vector<double> wanted(64, 1.0 / 64);
    // `most` itself is not drawn
    if (d == i8) wanted.assign(64, 4.0 / 255), wanted[63] = 3.0 / 255;
    EXPECT_LT(std::abs(chi_square(counts, wanted, many)), 3.3) << vt::name_of(d);
  }
  // Modulo a range just above half of 2^63 would draw the lower half twice as often.
  const vt::Tensor draws = rnd::randint(rnd::key(9), {many}, vt::tensor(std::uint64_t{0}),
                                        vt::tensor(std::uint64_t{3} << 62), u64);
  std::vector<double> counts(3, 0.0);
  for (std::uint64_t v : draws.to_vector<std::uint64_t>()) counts.at(v >> 62) += 1;
  EXPECT_LT(std::abs(chi_square(counts, std::vector<double>(3, 1.0 / 3), many)), 3.3);
  EXPECT_EQ(rnd::randint(rnd::key(1), {2}, 5, 5).to_vector<int>(), (std::vector<int>{5, 5}));
}

TEST(Discrete, RandintBeyondTheDtype) {
  using enum vt::DType;
  const std::vector<double> all(256, 1.0 / 256);
  EXPECT_LT(std::abs(chi_square(counted(rnd::randint(rnd::key(1), {many}, 0, 256, u8), 0, 256), all,
                                many)),
            3.3);
  EXPECT_LT(std::abs(chi_square(
                counted(rnd::randint(rnd::key(2), {many}, -128, 128, i8), -128, 256), all, many)),
            3.3);
  EXPECT_LT(std::abs(chi_square(counted(rnd::randint(rnd::key(3), {many}, -1000, 5, u8), 0, 5),
                                std::vector<double>(5, 0.2), many)),
            3.3);
  const auto ends = [](vt::Tensor low, vt::Tensor high, vt::DType d) {
    return rnd::randint(rnd::key(4), {2}, low, high, d).to_vector<std::int64_t>();
  };
  using Pair = std::vector<std::int64_t>;
  EXPECT_EQ(ends(vt::tensor(200), vt::tensor(400), i8), (Pair{127, 127}));
  EXPECT_EQ(ends(vt::tensor(-400), vt::tensor(-200), i8), (Pair{-128, -128}));
  EXPECT_EQ(ends(vt::tensor(std::int64_t{1} << 40), vt::tensor(std::uint64_t{1} << 63), i32),
            (Pair{2147483647, 2147483647}));
}

TEST(Discrete, BernoulliRademacherCategorical) {
  EXPECT_LT(std::abs(chi_square(counted(rnd::bernoulli(rnd::key(1), {many}, 0.3), 0, 2), {0.7, 0.3},
                                many)),
            3.3);
  EXPECT_EQ(vt::sum(rnd::bernoulli(rnd::key(1), {1000}, 0.0)).item<int>(), 0);
  EXPECT_EQ(vt::sum(rnd::bernoulli(rnd::key(1), {1000}, 1.0)).item<int>(), 1000);
  const auto signs = rnd::rademacher(rnd::key(2), {many}, vt::f32).to_vector<double>();
  double sum = 0;
  for (double s : signs) {
    ASSERT_EQ(std::abs(s), 1.0);
    sum += s;
  }
  EXPECT_LT(std::abs(sum), 3.3 * std::sqrt(static_cast<double>(many)));
  const vt::Tensor logits = vt::log(vt::tensor({0.1, 0.2, 0.3, 0.4}));
  const vt::Tensor drawn = vt::vmap([&](vt::Tensor k) { return rnd::categorical(k, logits); })(
      rnd::split(rnd::key(3), 100'000));
  EXPECT_LT(std::abs(chi_square(counted(drawn, 0, 4), {0.1, 0.2, 0.3, 0.4}, 100'000)), 3.3);
  EXPECT_EQ(rnd::categorical(rnd::key(1), vt::zeros({5, 3}), 0).shape(), (vt::Shape{3}));
}

TEST(Random, HalfPrecisionStaysInside) {
  for (vt::DType d : {vt::f16, vt::bf16}) {
    const vt::Tensor u = rnd::uniform(rnd::key(4), {100'000}, d);
    EXPECT_EQ(u.dtype(), d);
    const auto values = u.to_vector<double>();
    EXPECT_GE(*std::min_element(values.begin(), values.end()), 0.0);
    EXPECT_LT(*std::max_element(values.begin(), values.end()), 1.0);
    EXPECT_NEAR(vt::mean(u.astype(vt::f64)).item<double>(), 0.5, 0.01);
    const vt::Tensor n = rnd::normal(rnd::key(4), {100'000}, d).astype(vt::f64);
    EXPECT_NEAR(vt::mean(vt::square(n)).item<double>(), 1.0, 0.02);
  }
}

// The header's half-open range, in every dtype: wide and narrow, below zero, one step, a width
// beyond the dtype, and empty. The ends known while recording, as Tensors, under jit and mapped
// give the same bits.
TEST(Random, UniformIsBelowHighInEveryDtype) {
  struct Range {
    double low, high;
  };
  const std::int64_t draws = std::min<std::int64_t>(many, 100'000);
  for (vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64}) {
    const auto rounded = [d](double x) {
      return vt::tensor(x).astype(d).astype(vt::f64).item<double>();
    };
    const auto next = [d](double x) {
      return vt::nextafter(vt::tensor(x).astype(d), vt::tensor(1e300 * 1e300).astype(d))
          .astype(vt::f64)
          .item<double>();
    };
    const double greatest = d == vt::f16 ? 65504 : d == vt::f64 ? 1.7e308 : 3.3e38;
    for (const Range r : {Range{100, 101},
                          {-101, -100},
                          {1000, 1002},
                          {0.1, 0.3},
                          {-1, 0},
                          {0, 3},
                          {1, next(1)},
                          {1, next(next(next(1)))},
                          {-next(1), -1},
                          {0, next(0)},
                          {-next(0), next(0)},
                          {-greatest, greatest},
                          {0, greatest},
                          {2, 2},
                          {3, 2}}) {
      const double low = rounded(r.low), high = rounded(r.high);
      const vt::Tensor k = rnd::key(7), x = rnd::uniform(k, {draws}, r.low, r.high, d);
      const auto values = x.astype(vt::f64).to_vector<double>();
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      EXPECT_GE(*least, low) << vt::name_of(d) << " from " << low << " to " << high;
      if (low < high) EXPECT_LT(*most, high) << vt::name_of(d) << " from " << low << " to " << high;
      else EXPECT_EQ(*most, low) << vt::name_of(d);
      const vt::Tensor a = vt::tensor(r.low).astype(d), b = vt::tensor(r.high).astype(d);
      const auto draw = [&](vt::Tensor p, vt::Tensor q) {
        return rnd::uniform(k, {draws}, p, q, d);
      };
      for (const vt::Tensor& other : {draw(a, b), vt::jit(draw)(a, b),
                                      vt::vmap(draw)(vt::stack({b, a}), vt::stack({a, b}))[1]})
        EXPECT_EQ(other.astype(vt::f64).to_vector<double>(), values)
            << vt::name_of(d) << " from " << low << " to " << high;
    }
  }
}

// Classes without a share, at the ends, in the middle and beside the least numbers, are never
// drawn, and none beyond the last.
TEST(Random, ClassesWithoutAShareAreNotDrawn) {
  for (vt::DType d : {vt::f16, vt::f32, vt::f64}) {
    std::vector<double> p(3000);
    for (std::size_t i = 0; i < p.size(); ++i)
      p[i] = i % 7 == 3 || i < 5 || i + 5 >= p.size() ? 0.0 : 1.0 + static_cast<double>(i % 5);
    const auto seen = [&](const std::vector<double>& shares, const vt::Tensor& drawn) {
      for (int i : drawn.astype(vt::i32).to_vector<int>()) {
        ASSERT_LT(static_cast<std::size_t>(i), shares.size()) << vt::name_of(d);
        ASSERT_GT(shares[i], 0.0) << vt::name_of(d) << " at " << i;
      }
    };
    const auto n = static_cast<std::int64_t>(p.size());
    seen(p, rnd::choice(rnd::key(5), n, {200'000}, {.p = vt::tensor(p).astype(d)}));
    seen(p, rnd::choice(rnd::key(5), n, {2'000}, {.replace = false, .p = vt::tensor(p).astype(d)}));
    seen(p, rnd::categorical(rnd::key(5), vt::log(vt::tensor(p).astype(d)), {100}, {}));
    const double least = d == vt::f64 ? 5e-324 : d == vt::f32 ? 1.4e-45 : 6e-8;
    seen({0, least, 0},
         rnd::choice(rnd::key(5), 3, {1'000}, {.p = vt::tensor({0.0, least, 0.0}).astype(d)}));
  }
}

// What rounding takes from `high` is no function of the ends.
TEST(Random, UniformBelowHighKeepsItsDerivatives) {
  const auto total = [](vt::Tensor low, vt::Tensor high) {
    return vt::sum(rnd::uniform(rnd::key(9), {20'000}, low, high));
  };
  const double u = vt::sum(rnd::uniform(rnd::key(9), {20'000})).item<double>();
  // Four numbers of f32 between the ends: an eighth of the draws are rounded to `high`.
  const auto [low, high] = vt::grad<0, 1>(total)(vt::tensor(1048576.0f), vt::tensor(1048576.5f));
  EXPECT_NEAR(high.item<double>(), u, 1e-3 * u);
  EXPECT_NEAR(low.item<double>(), 20'000 - u, 1e-3 * u);
}

// Between the bounds, and not infinite where the mass below one of them iterations to that below
// infinity.
TEST(Random, TruncatedNormalIsBetweenItsBoundsInEveryDtype) {
  for (vt::DType d : {vt::f16, vt::bf16, vt::f32, vt::f64})
    for (const auto& [a, b] : {std::pair{-0.1, 0.1},
                               {0.7, 0.75},
                               {2.0, 3.0},
                               {4.0, 1e300 * 1e300},
                               {-1e300 * 1e300, -4.0}}) {
      const auto values = rnd::truncated_normal(rnd::key(3), {100'000}, a, b, d)
                              .astype(vt::f64)
                              .to_vector<double>();
      const auto [least, most] = std::minmax_element(values.begin(), values.end());
      EXPECT_GT(*least, a) << vt::name_of(d);
      EXPECT_LT(*most, b) << vt::name_of(d);
      EXPECT_LT(std::max(-*least, *most), 10) << vt::name_of(d);
    }
}

// In the tails too a draw has all digits of its dtype, as far as numbers are between the bounds,
// and the same bits whatever runs it. Where the bounds are none there is no number.
TEST(Random, TruncatedNormalOfTheTailsIsNotCoarse) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  struct Case {
    double low, high;
    std::size_t f32_values, f64_values;  // at least, of 20,000
  };
  for (const Case& c : {Case{5, 6, 19'000, 20'000}, Case{6, 7, 19'000, 20'000},
                        Case{9, 10, 19'000, 20'000}, Case{-10, -9, 19'000, 20'000},
                        Case{-infinity, -37, 10'000, 20'000}, Case{-2, 40, 19'000, 20'000},
                        Case{100, 100.01, 1'000, 20'000}, Case{1e5, infinity, 1, 19'000}})
    for (vt::DType d : {vt::f32, vt::f64}) {
      const auto draw = [d](vt::Tensor low, vt::Tensor high) {
        return rnd::truncated_normal(rnd::key(3), {20'000}, low, high, d);
      };
      auto values = rnd::truncated_normal(rnd::key(3), {20'000}, c.low, c.high, d)
                        .astype(vt::f64)
                        .to_vector<double>();
      const vt::Tensor low = vt::tensor(c.low), high = vt::tensor(c.high);
      for (const vt::Tensor& other :
           {draw(low, high), vt::jit(draw)(low, high),
            vt::vmap(draw)(vt::stack({low, low}), vt::stack({high, high}))[1]})
        EXPECT_EQ(other.astype(vt::f64).to_vector<double>(), values)
            << vt::name_of(d) << " from " << c.low << " to " << c.high;
      std::sort(values.begin(), values.end());
      EXPECT_GT(values.front(), c.low);
      EXPECT_LT(values.back(), c.high);
      const auto distinct = std::unique(values.begin(), values.end()) - values.begin();
      EXPECT_GE(static_cast<std::size_t>(distinct), d == vt::f32 ? c.f32_values : c.f64_values)
          << vt::name_of(d) << " from " << c.low << " to " << c.high;
    }
  EXPECT_EQ(rnd::truncated_normal(rnd::key(1), {}, 1e300, infinity, vt::f64).item<double>(),
            std::nextafter(1e300, infinity));
  for (const auto& [low, high] : {std::pair{2.0, 1.0}, {1.0, 1.0}, {NAN, 1.0}, {0.0, NAN}})
    EXPECT_TRUE(std::isnan(rnd::truncated_normal(rnd::key(1), {}, low, high).item<double>()));
}

TEST(Random, NeighbouringSeedsAndKeysAreUnrelated) {
  const vt::Tensor a = rnd::normal(rnd::key(1), {many}, vt::f64),
                   b = rnd::normal(rnd::key(2), {many}, vt::f64);
  EXPECT_LT(std::abs(vt::mean(a * b).item<double>()), 3.3 / std::sqrt(static_cast<double>(many)));
  const vt::Tensor keys = rnd::split(rnd::key(1), 2);
  const vt::Tensor c = rnd::normal(keys[0], {many}, vt::f64),
                   d = rnd::normal(keys[1], {many}, vt::f64);
  EXPECT_LT(std::abs(vt::mean(c * d).item<double>()), 3.3 / std::sqrt(static_cast<double>(many)));
}

TEST(Random, Refusals) {
  const auto says = [](const std::function<void()>& f, const std::string& part) {
    const std::string text = message(f);
    EXPECT_NE(text.find(part), std::string::npos) << text;
    EXPECT_NE(text.find("random_test.cpp:"), std::string::npos) << text;
  };
  says([] { (void)rnd::normal(vt::ones({2}), {3}); }, "vt::random::normal: a key is one u64");
  says([] { (void)rnd::uniform(rnd::split(rnd::key(1), 4), {3}); },
       "vt::random::uniform: a key is one u64");
  says([] { (void)rnd::normal(rnd::key(1), {3}, vt::i32); }, "i32 is no float dtype");
  says([] { (void)rnd::bits(rnd::key(1), {3}, vt::f32); }, "f32 is no unsigned");
  says([] { (void)rnd::uniform(rnd::key(1), {3}, vt::zeros({2}), 1.0); },
       "does not broadcast to [3]");
  says([] { (void)rnd::split(rnd::key(1), -1); }, "cannot make -1 keys");
  says([] { (void)rnd::bits(rnd::key(1), {2, -3}); }, "negative extent");
  says([] { (void)rnd::fold_in(rnd::key(1), 0.5); }, "one integer");
  says([] { (void)rnd::rademacher(rnd::key(1), {2}, vt::u8); }, "cannot hold -1");
  says([] { (void)rnd::categorical(rnd::key(1), vt::zeros({5, 3}), 2); }, "random::categorical");
}

// jax 0.10.2, jax.random.key(42), x64 enabled.
TEST(Random, OrdersAndChoicesSameAsJax) {
  const vt::Tensor k = rnd::key(42), x = vt::reshape(vt::arange(12, vt::f64), {4, 3});
  EXPECT_EQ(rnd::permutation(k, 10).to_vector<int>(),
            (std::vector<int>{7, 4, 2, 5, 3, 6, 8, 9, 0, 1}));
  // two iterations
  EXPECT_EQ(vt::slice_in_dim(rnd::permutation(k, 2000), 0, 5).to_vector<int>(),
            (std::vector<int>{1474, 815, 539, 874, 1693}));
  EXPECT_EQ(rnd::shuffle(k, x).to_vector<double>(),
            (std::vector<double>{3, 7, 2, 6, 4, 5, 9, 10, 11, 0, 1, 8}));
  EXPECT_EQ(rnd::permutation(k, x, 1).to_vector<double>(),
            (std::vector<double>{2, 0, 1, 5, 3, 4, 8, 6, 7, 11, 9, 10}));
  const vt::Tensor p = vt::tensor({.1, .2, .3, .1, .2, .1});
  EXPECT_EQ(rnd::choice(k, 10, {4}, {.replace = false}).to_vector<int>(),
            (std::vector<int>{7, 4, 2, 5}));
  EXPECT_EQ(rnd::choice(k, 6, {3}, {.replace = false, .p = p}).to_vector<int>(),
            (std::vector<int>{2, 4, 3}));
  EXPECT_EQ(rnd::choice(k, 6, {5}, {.p = p}).to_vector<int>(), (std::vector<int>{2, 5, 2, 1, 2}));
}

/// Σ (observed − expected)² / expected.
double chi_square(const std::vector<int>& counts, const std::vector<double>& expected) {
  double sum = 0;
  for (std::size_t i = 0; i < counts.size(); ++i)
    sum += (counts[i] - expected[i]) * (counts[i] - expected[i]) / expected[i];
  return sum;
}

TEST(Random, EveryOrderIsAsLikely) {
  constexpr int draws = 24000;
  const auto orders =
      vt::vmap([](vt::Tensor k) { return rnd::permutation(k, 4); })(rnd::split(rnd::key(11), draws))
          .to_vector<int>();
  std::vector<int> counts(256), seen;
  for (int i = 0; i < draws; ++i) {
    int code = 0;
    for (int j = 0; j < 4; ++j) code = code * 4 + orders[4 * i + j];
    ++counts[code];
  }
  for (int c : counts)
    if (c) seen.push_back(c);
  ASSERT_EQ(seen.size(), 24u);
  // 23 degrees of freedom: beyond with probability 0.001
  EXPECT_LT(chi_square(seen, std::vector<double>(24, draws / 24.0)), 49.7);
}

TEST(Random, ChoicesAreAsLikelyAsAsked) {
  constexpr int draws = 60000;
  const vt::Tensor p = vt::tensor({0.0, 3.0, 1.0, 0.0, 4.0, 2.0});
  const auto drawn = rnd::choice(rnd::key(12), 6, {draws}, {.p = p}).to_vector<int>();
  const auto first = vt::vmap([&](vt::Tensor k) {
    return vt::Tensor(rnd::choice(k, 6, {3}, {.replace = false, .p = p})[0]);
  })(rnd::split(rnd::key(13), draws));
  for (const auto& indices : {drawn, first.to_vector<int>()}) {
    std::vector<int> counts(6);
    for (int i : indices) ++counts[i];
    EXPECT_EQ(counts[0] + counts[3], 0);
    // 3: 0.001
    EXPECT_LT(chi_square({counts[1], counts[2], counts[4], counts[5]},
                         {.3 * draws, .1 * draws, .4 * draws, .2 * draws}),
              16.3);
  }
  const auto even = rnd::choice(rnd::key(14), vt::arange(5) * 10, {draws}).to_vector<int>();
  std::vector<int> counts(5);
  for (int v : even) ++counts[v / 10];
  EXPECT_LT(chi_square(counts, std::vector<double>(5, draws / 5.0)), 18.5);  // 4: 0.001
}

TEST(Random, OrdersOfOtherShapes) {
  const vt::Tensor k = rnd::key(15), x = vt::reshape(vt::arange(24), {2, 3, 4});
  for (int axis : {0, 1, -1}) {
    for (bool independent : {false, true}) {
      const vt::Tensor y = rnd::permutation(k, x, axis, independent);
      EXPECT_EQ(vt::sort(y, axis).to_vector<int>(), x.to_vector<int>());
    }
    EXPECT_EQ(rnd::choice(k, x, {2, 2}, {.axis = axis}).rank(), 4);
  }
  EXPECT_EQ(rnd::permutation(k, 0).shape(), vt::Shape{0});
  EXPECT_EQ(rnd::permutation(k, 1).to_vector<int>(), std::vector<int>{0});
  EXPECT_EQ(rnd::choice(k, vt::zeros({0, 2}), {0}).shape(), (vt::Shape{0, 2}));
  EXPECT_NE(message([&] {
              (void)rnd::choice(k, 3, {4}, {.replace = false});
            }).find("vt::random::choice: cannot draw 4 of 3 without replacement"),
            std::string::npos);
  EXPECT_NE(message([&] { (void)rnd::choice(k, 0, {4}); }).find("there is nothing to draw from"),
            std::string::npos);
  EXPECT_NE(message([&] {
              (void)rnd::choice(k, 3, {4}, {.p = vt::ones({4})});
            }).find("must have shape [3]"),
            std::string::npos);
  EXPECT_NE(message([&] {
              (void)rnd::permutation(k, vt::tensor(1.0));
            }).find("vt::random::permutation: axis 0 out of range"),
            std::string::npos);
}

}  // namespace
