// curve_fit on NIST's nonlinear regression sets: both starts of each in one vmap, against the
// values that NIST certifies.
#include <gtest/gtest.h>

#include "nist_sets.hpp"

namespace {

using vt::Tensor;
using vt_test::nist::digits;
using vt_test::nist::Set;

struct Fit {
  std::vector<double> x, errors, values;
  std::vector<int> reasons;
  std::vector<std::int64_t> iterations;
};
Fit fit(const Set& set, const vt::LeastSquaresOptions& options) {
  const auto one = [&](Tensor start) {
    const auto model = [&](Tensor b, Tensor x) { return vt_test::nist::model(set.name, b, x); };
    const auto c = vt::curve_fit(model, set.x, set.y, start, {.solver = options});
    return std::tuple(c.x, c.standard_errors, c.value, c.reason, c.iterations);
  };
  const auto [x, errors, value, reason, iterations] = vt::vmap(one)(set.starts);
  return {x.to_vector<double>(), errors.to_vector<double>(), value.to_vector<double>(),
          reason.to_vector<int>(), iterations.to_vector<std::int64_t>()};
}

void expect_digits(const vt::LeastSquaresOptions& options) {
  const std::vector<Set> sets = vt_test::nist::sets();
  ASSERT_EQ(sets.size(), 27u);
  int four = 0, eight = 0;
  std::string table;
  for (const Set& set : sets) {
    SCOPED_TRACE(set.name);
    const Fit found = fit(set, options);
    const std::size_t n = set.certified.size();
    for (std::size_t start = 0; start < 2; ++start) {
      const double right = digits(found.x.data() + start * n, set.certified);
      four += right >= 4;
      eight += right >= 8;
      table += set.name + " from start " + std::to_string(start + 1) + ": " +
               std::to_string(right) + " digits, " + std::to_string(found.iterations[start]) +
               " iterations, " + vt::name_of(vt::StopReason(found.reasons[start])) + "\n";
      // The residuals of Lanczos1 are rounding errors: no step need be seen to lower their squares.
      if (set.name == "Lanczos1") continue;
      EXPECT_LT(found.reasons[start], static_cast<int>(vt::StopReason::max_iterations));
      EXPECT_GE(digits(found.errors.data() + start * n, set.deviations), 6);
      EXPECT_NEAR(2 * found.values[start] / set.sum_of_squares, 1, 1e-8);
    }
  }
  EXPECT_EQ(four, 54) << table;
  EXPECT_GE(eight, 53) << table;
}

TEST(Nist, NormalEquations) { expect_digits({}); }
TEST(Nist, Qr) { expect_digits({.method = vt::LeastSquaresMethod::qr}); }

}  // namespace
