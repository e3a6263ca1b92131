// A real objective from end to end: the Gaussian mixtures of the ADBench suite, against values
// computed with JAX in f64.
#include <gtest/gtest.h>

#include <cmath>

#include "perf/gmm.hpp"
#include "support/data.hpp"

namespace {

struct Case {
  const char* name;
  double value;
};

class Gmm : public testing::TestWithParam<Case> {};

TEST_P(Gmm, ValueAndGradient) {
  const perf::Gmm g = perf::read_gmm(vt_test::data_folder() + "gmm_" + GetParam().name + ".txt");
  const auto f = perf::gmm_objective(g);
  const double value = vt::jit(f)(g.alphas, g.means, g.factors).item<double>();
  EXPECT_NEAR(value, GetParam().value, 1e-11 * std::abs(value));

  // The gradient along a direction against the central difference there.
  const auto [a, m, q] = vt::jit(vt::grad<0, 1, 2>(f))(g.alphas, g.means, g.factors);
  const vt::Tensor da = vt::sin(g.alphas), dm = vt::cos(g.means), dq = vt::sin(3.0 * g.factors);
  const double slope = (vt::sum(a * da) + vt::sum(m * dm) + vt::sum(q * dq)).item<double>();
  const double h = 1e-6;
  const auto at = [&](double t) {
    return f(g.alphas + t * da, g.means + t * dm, g.factors + t * dq).item<double>();
  };
  EXPECT_NEAR(slope, (at(h) - at(-h)) / (2 * h), 1e-6 * std::abs(slope) + 1e-3);
}

INSTANTIATE_TEST_SUITE_P(AdBench, Gmm,
                         testing::Values(Case{"d10_K25", -25649.652621197303},
                                         Case{"d20_K50", -65629.50687126732}));

}  // namespace
