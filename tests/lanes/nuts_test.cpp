// The No-U-Turn Sampler of the examples: a recursion whose lanes part at every trajectory. What is
// known of it holds under each schedule of lanes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <vt/vt.hpp>

#include "examples/nuts/nuts.hpp"
#include "support/property.hpp"

namespace {

using vt::Tensor;

constexpr vt::LaneSchedule schedules[] = {vt::LaneSchedule::automatic, vt::LaneSchedule::groups,
                                          vt::LaneSchedule::hybrid,
                                          vt::LaneSchedule::program_counter};

template <class LogDensity>
nuts::Draw run_chains(const LogDensity& log_density, const nuts::Settings& settings,
                      const Tensor& starts, std::int64_t draws, vt::LaneSchedule schedule,
                      std::uint64_t seed = 1) {
  const nuts::Sampler sampler(log_density, settings);
  const auto chain = [&](Tensor key, Tensor start) { return sampler.chain(key, start, draws); };
  const Tensor keys = vt::random::split(vt::random::key(seed), starts.shape()[0]);
  const nuts::Draw all = vt::jit(vt::vmap(chain, {.schedule = schedule}))(keys, starts);
  vt::eval(all);
  return all;
}

Tensor narrow_and_wide(const Tensor& x) {  // of deviations 1, 2 and 0.3
  return -0.5 * vt::sum(vt::square(x / vt::tensor({1.0f, 2.0f, 0.3f})));
}
Tensor starts_of(std::int64_t chains) {
  return vt::random::normal(vt::random::key(2), {chains, 3});
}

double difference(const Tensor& a, const Tensor& b) {
  return vt::max(vt::abs(a - b)).item<double>();
}

// --- what there is to count ----------------------------------------------------------------------

TEST(NutsTest, FullTreesTakeTheLeapfrogsOfAllLeaves) {
  const auto flat = [](Tensor x) { return 0.0 * vt::sum(x); };  // where nothing turns back
  for (const vt::LaneSchedule schedule : schedules)
    for (const int depth : {1, 2, 5}) {
      const nuts::Draw all = run_chains(flat, {.max_depth = depth}, starts_of(4), 3, schedule);
      EXPECT_TRUE(vt::all(all.depth == depth).item<bool>());
      EXPECT_TRUE(vt::all(all.gradients == ((1 << depth) - 1) * 4).item<bool>());
      EXPECT_FALSE(vt::any(all.divergent).item<bool>());
    }
}

TEST(NutsTest, OtherTreesTakeFewer) {
  const nuts::Draw all = run_chains(narrow_and_wide, {.step_size = 0.1}, starts_of(8), 20,
                                    vt::LaneSchedule::automatic);
  const auto gradients = all.gradients.to_vector<int>(), depth = all.depth.to_vector<int>();
  int different = 0;
  for (std::size_t i = 0; i < depth.size(); ++i) {
    EXPECT_EQ(gradients[i] % 4, 0);
    EXPECT_LE(gradients[i], ((1 << depth[i]) - 1) * 4);
    EXPECT_GT(gradients[i], ((1 << (depth[i] - 1)) - 1) * 4);
    different += depth[i] != depth[0];
  }
  EXPECT_GT(different, 0);
}

TEST(NutsTest, StepsThatAreTooLargeDiverge) {
  const Tensor start = vt::ones({2, 3});
  const nuts::Draw all =
      run_chains(narrow_and_wide, {.step_size = 30.0}, start, 3, vt::LaneSchedule::automatic);
  EXPECT_TRUE(vt::all(all.divergent).item<bool>());
  EXPECT_TRUE(vt::all(all.theta == 1.0).item<bool>());  // they stay where they are
  EXPECT_TRUE(vt::all(all.gradients == 4).item<bool>());
}

// --- what does not matter ------------------------------------------------------------------------

TEST(NutsTest, ChainsAreThoseOfOneAfterTheOther) {
  constexpr std::int64_t chains = 6, draws = 5;
  const nuts::Settings settings{.step_size = 0.1};
  const nuts::Sampler sampler(narrow_and_wide, settings);
  const auto one =
      vt::jit([&](Tensor key, Tensor start) { return sampler.chain(key, start, draws); });
  const Tensor starts = starts_of(chains), keys = vt::random::split(vt::random::key(1), chains);
  for (const vt::LaneSchedule schedule : schedules) {
    const nuts::Draw all = run_chains(narrow_and_wide, settings, starts, draws, schedule);
    for (int i = 0; i < chains; ++i) {
      const nuts::Draw alone = one(keys[i], starts[i]);
      EXPECT_LT(difference(all.theta[i], alone.theta), 1e-4);
      EXPECT_TRUE(vt::all(all.gradients[i] == alone.gradients).item<bool>());
      EXPECT_TRUE(vt::all(all.depth[i] == alone.depth).item<bool>());
    }
  }
}

TEST(NutsTest, ASeedGivesTheSameDrawsAgain) {
  const auto draw = [](std::uint64_t seed) {
    return run_chains(narrow_and_wide, {}, starts_of(5), 4, vt::LaneSchedule::program_counter, seed)
        .theta;
  };
  const Tensor first = draw(1);
  EXPECT_EQ(difference(first, draw(1)), 0);
  EXPECT_GT(difference(first, draw(2)), 0.1);
}

// --- the target is what chains keep to -----------------------------------------------------------

/// In steps so large that energies are off, as the slice is of no importance else. Chains that
/// start with draws of the target end with such, however few steps they take: their distribution is
/// within a bound that a right one leaves once in a million times (Dvoretzky, Kiefer, Wolfowitz,
/// with the constant of Massart).
template <class LogDensity, class Distribution>
void expect_kept(const LogDensity& log_density, double step_size, const Tensor& starts,
                 const Distribution& distribution) {
  const nuts::Draw all =
      run_chains(log_density, {.step_size = step_size, .max_depth = 5, .leapfrogs = 1},
                 vt::expand_dims(starts, 1), 10, vt::LaneSchedule::automatic);
  const Tensor last = vt::transpose(all.theta, {1, 0, 2})[-1];
  EXPECT_GT(vt::mean(vt::abs(last - vt::expand_dims(starts, 1))).item<double>(), 0.1);
  std::vector<double> p = distribution(last).template to_vector<double>();
  std::ranges::sort(p);
  const auto n = static_cast<double>(p.size());
  double off = 0;
  for (std::size_t i = 0; i < p.size(); ++i) {
    const auto before = static_cast<double>(i);
    off = std::max({off, std::abs(p[i] - before / n), std::abs(p[i] - (before + 1) / n)});
  }
  EXPECT_LT(off, std::sqrt(std::log(2e6) / (2 * n)));
}

/// 50,000, or fewer where the suite runs in a slow mode.
const auto chains = static_cast<std::int64_t>(vt_test::environment("VT_DRAWS", 1'000'000) / 20);

TEST(NutsTest, KeepsToTheNormalDistribution) {
  const Tensor starts = vt::random::normal(vt::random::key(3), {chains});
  expect_kept([](Tensor x) { return -0.5 * vt::sum(vt::square(x)); }, 1.2, starts,
              [](Tensor x) { return vt::special::ndtr(x.astype(vt::f64)); });
}

TEST(NutsTest, KeepsToTheLogitOfABetaDistribution) {
  const double a = 2.0, b = 0.7;
  const Tensor p = vt::random::beta(vt::random::key(4), {chains}, a, b, vt::f64);
  const Tensor starts = (vt::log(p) - vt::log1p(-p)).astype(vt::f32);
  expect_kept([=](Tensor x) { return -vt::sum(a * vt::softplus(-x) + b * vt::softplus(x)); }, 1.0,
              starts,
              [=](Tensor x) { return vt::special::betainc(a, b, vt::sigmoid(x.astype(vt::f64))); });
}

}  // namespace
