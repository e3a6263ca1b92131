// Random programs of nested loops, branches, functions and recursion: values and gradients,
// compiled, alone and in lanes, against the same programs in plain C++ with dual numbers. A failure
// names the seed that repeats it: VT_FUZZ_SEED=… VT_FUZZ_COUNT=25.
#include <gtest/gtest.h>

#include "support/property.hpp"
#include "support/random_control.hpp"

namespace {

using vt::Tensor;
using vt_test::random_control::Dual;
using vt_test::random_control::Program;

const std::uint64_t first_seed = vt_test::environment("VT_FUZZ_SEED", 1);
const std::uint64_t programs = vt_test::environment("VT_FUZZ_COUNT", 1000) / 25;

struct Arguments {
  Tensor x, v, rows, n;
};
Arguments arguments(const Program& program, const Program::Inputs& in) {
  const auto width = static_cast<std::int64_t>(program.width),
             length = static_cast<std::int64_t>(program.length);
  return {vt::tensor(in.x), vt_test::make_tensor(vt::f64, {width}, in.v),
          vt_test::make_tensor(vt::f64, {length, width}, in.rows), vt::tensor(in.n)};
}

void expect_number(double actual, double expected, const std::string& what) {
  EXPECT_NEAR(actual, expected, 1e-9 * (1 + std::fabs(expected))) << what;
}

/// `value` f64[], `by_x` f64[], `by_v` f64[width], `by_rows` f64[length, width].
void expect_dual(const Program& program, const Tensor& value, const Tensor& by_x,
                 const Tensor& by_v, const Tensor& by_rows, const Dual& expected,
                 const std::string& what) {
  expect_number(value.item<double>(), expected.value, what + ": value");
  std::vector<double> slopes;
  for (const Tensor& by : {by_x, by_v, by_rows})
    for (double slope : by.to_vector<double>()) slopes.push_back(slope);
  for (std::size_t k = 0; k < program.directions(); ++k) {
    double along = 0;
    for (std::size_t i = 0; i < slopes.size(); ++i) along += slopes[i] * program.direction(k, i);
    expect_number(along, expected.slopes[k], what + ": derivative " + std::to_string(k));
  }
}

TEST(RandomControl, GradientsAreThoseOfDualNumbers) {
  for (std::uint64_t seed = first_seed; seed < first_seed + programs; ++seed) {
    SCOPED_TRACE("VT_FUZZ_SEED=" + std::to_string(seed) + " VT_FUZZ_COUNT=25");
    const Program program(seed);
    const auto slopes = vt::value_and_grad<0, 1, 2>(program);
    const auto alone = vt::jit(slopes);
    std::vector<Arguments> lanes;
    std::vector<Dual> expected;
    for (std::uint64_t lane = 0; lane < (program.is_wide() ? 4 : 33); ++lane) {
      lanes.push_back(arguments(program, program.inputs(lane)));
      expected.push_back(program.in_plain_numbers(program.inputs(lane)));
    }
    for (std::size_t k = 0; k < 4; ++k) {
      const Arguments& a = lanes[k];
      const auto [value, g] = k == 3 ? slopes(a.x, a.v, a.rows, a.n) : alone(a.x, a.v, a.rows, a.n);
      const auto& [by_x, by_v, by_rows] = g;
      expect_dual(program, value, by_x, by_v, by_rows, expected[k], k == 3 ? "eager" : "compiled");
    }
    const std::size_t number = seed % program.directions();
    Program::Inputs direction = program.inputs(0);
    std::size_t input = 0;
    direction.x = program.direction(number, input++);
    for (std::vector<double>* part : {&direction.v, &direction.rows})
      for (double& d : *part) d = program.direction(number, input++);
    const Arguments &a = lanes[0], b = arguments(program, direction);
    const auto [value_again, tangent] = vt::jit([&](const Arguments& at) {
      return vt::jvp([&](Tensor x, Tensor v, Tensor rows) { return program(x, v, rows, at.n); },
                     std::tuple(at.x, at.v, at.rows), std::tuple(b.x, b.v, b.rows));
    })(a);
    expect_number(value_again.item<double>(), expected[0].value, "forward: value");
    expect_number(tangent.item<double>(), expected[0].slopes[number], "forward: derivative");

    constexpr std::size_t counts[] = {1, 2, 3, 8, 16, 33};
    const std::size_t count = std::min(counts[seed % std::size(counts)], lanes.size());
    std::vector<Tensor> x, v, rows, n;
    for (std::size_t k = 0; k < count; ++k) {
      x.push_back(lanes[k].x);
      v.push_back(lanes[k].v);
      rows.push_back(lanes[k].rows);
      n.push_back(lanes[k].n);
    }
    const auto mapped = vt::jit(vt::vmap(slopes));
    const auto [value, g] = mapped(vt::stack(x), vt::stack(v), vt::stack(rows), vt::stack(n));
    const auto& [by_x, by_v, by_rows] = g;
    for (std::size_t k = 0; k < count; ++k) {
      const auto i = static_cast<std::int64_t>(k);
      expect_dual(program, value[i], by_x[i], by_v[i], by_rows[i], expected[k],
                  "lane " + std::to_string(k) + " of " + std::to_string(count));
    }
    if (HasFailure()) return;
  }
}

}  // namespace
