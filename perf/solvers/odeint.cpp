// odeint on one thread: lanes with differing end times and rates, one trajectory, rows, gradients;
// beside Boost where it is installed. The figures are of steps that are tried.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

#include "../support.hpp"
#include "native_odeint.hpp"

namespace {

using vt::OdeMethod;
using vt::Tensor;

Tensor lorenz(Tensor, Tensor y) {
  const Tensor a = y[0], b = y[1], c = y[2];
  return vt::stack({10.0 * (b - a), 28.0 * a - b - a * c, a * b - (8.0 / 3) * c});
}
Tensor uniform(const vt::Shape& shape, double low, double high, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values(static_cast<std::size_t>(shape.elements()));
  for (double& v : values) v = draw(bits);
  return vt::tensor(values).reshape(shape).eval();
}
void expect(const char* what, double actual, double expected, double tolerance) {
  if (std::abs(actual - expected) <= tolerance * std::abs(expected)) return;
  std::fprintf(stderr, "%s: %.17g, but Boost gives %.17g\n", what, actual, expected);
  std::exit(1);
}
double tried(const Tensor& iterations, const Tensor& rejected) {
  return vt::sum(iterations + rejected).item<double>();
}

void lorenz_rows(std::int64_t lanes) {
  constexpr double tolerance = 1e-8;
  const std::string name = "odeint/lorenz/" + std::to_string(lanes);
  const Tensor y0 = uniform({lanes, 3}, 1, 10, 1), t1 = uniform({lanes}, 1, 10, 2);
  const auto solve = [](Tensor y, Tensor t, Tensor save_at) {
    return vt::odeint(lorenz, y,
                      {.method = OdeMethod::dopri5,
                       .t1 = t,
                       .save_at = save_at,
                       .rtol = tolerance,
                       .atol = tolerance});
  };
  const auto end = [=](Tensor y, Tensor t) {
    const auto s = solve(y, t, {});
    return std::tuple(s.y, s.iterations, s.rejected);
  };
  // One lane is a plain call.
  const auto of_lanes = [lanes](auto f) {
    return [lanes, each = vt::jit(vt::vmap(f)), one = vt::jit(f)](const auto&... x) {
      return lanes > 1 ? each(x...) : one(x[0]...);
    };
  };
  const auto run = of_lanes(end);
  const auto [y, iterations, rejected] = run(y0, t1);
  const double steps = tried(iterations, rejected);
  std::vector<double> peer = y0.to_vector<double>();
  const std::vector<double> ends = t1.to_vector<double>();
  if (perf::odeint::boost_lorenz(peer, ends, tolerance) > 0) {
    expect("Lorenz", y.to_vector<double>()[0], peer[0], 1e-3);
    perf::row_on(
        1, name + "/boost",
        [=] {
          std::vector<double> state = y0.to_vector<double>();
          perf::odeint::boost_lorenz(state, ends, tolerance);
        },
        steps, "Gstep/s");
  }
  perf::row_on(1, name + "/vt", [=] { std::get<0>(run(y0, t1)).eval(); }, steps, "Gstep/s");
  const auto slope =
      of_lanes(vt::grad([=](Tensor y, Tensor t) { return vt::sum(solve(y, t, {}).y); }));
  perf::row_on(1, name + "/gradient/vt", [=] { slope(y0, t1).eval(); }, steps, "Gstep/s");
  for (const std::int64_t m : {10, 1000}) {
    const auto rows = of_lanes([=](Tensor y, Tensor t) {
      return solve(y, t, t * vt::arange(m).astype(vt::f64) / static_cast<double>(m)).ys;
    });
    perf::row_on(
        1, name + "/rows_" + std::to_string(m) + "/vt", [=] { rows(y0, t1).eval(); }, steps,
        "Gstep/s");
  }
}

void stiff_rows(std::int64_t lanes) {
  const Tensor rates = vt::exp(uniform({lanes, 3}, -1, 1, 3)) * vt::tensor({0.04, 1e4, 3e7});
  const auto robertson = [](Tensor k) {
    const auto f = [=](Tensor, Tensor y) {
      const Tensor a = k[0] * y[0], b = k[1] * y[1] * y[2], c = k[2] * y[1] * y[1];
      return vt::stack({b - a, a - b - c, c});
    };
    const auto s =
        vt::odeint(f, vt::tensor({1.0, 0.0, 0.0}),
                   {.method = OdeMethod::rodas5p, .t1 = 1e5, .rtol = 1e-6, .atol = 1e-10});
    return std::tuple(s.y, s.iterations, s.rejected);
  };
  const std::string name = "odeint/robertson/" + std::to_string(lanes);
  const auto run = vt::jit(vt::vmap(robertson));
  const auto [y, iterations, rejected] = run(rates);
  const double steps = tried(iterations, rejected);
  const std::vector<double> k = rates.to_vector<double>();
  std::vector<double> peer(static_cast<std::size_t>(lanes));
  if (perf::odeint::boost_robertson(k, peer, 1e5, 1e-6, 1e-10) > 0) {
    expect("Robertson", y.to_vector<double>()[0], peer[0], 1e-3);
    perf::row_on(1, name + "/boost", [=] {
      std::vector<double> ends(static_cast<std::size_t>(lanes));
      perf::odeint::boost_robertson(k, ends, 1e5, 1e-6, 1e-10);
    });
  }
  perf::row_on(1, name + "/vt", [=] { std::get<0>(run(rates)).eval(); }, steps, "Gstep/s");
  const auto slope = vt::jit(vt::vmap(vt::grad(
      [=](Tensor r) { return vt::sum(std::get<0>(robertson(r)) * vt::tensor({1.0, 1e4, 2.0})); })));
  perf::row_on(1, name + "/gradient/vt", [=] { slope(rates).eval(); }, steps, "Gstep/s");
}

}  // namespace

int main(int argc, char** argv) {
  vt::set_num_threads(1);
  for (const std::int64_t lanes : {1, 10000}) lorenz_rows(lanes);
  for (const std::int64_t lanes : {1, 10000}) stiff_rows(lanes);
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
