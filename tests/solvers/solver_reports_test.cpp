// cg, bicgstab, newton and fixed_point with a report: the same x and derivatives as without,
// numbers of iterations, why they end, lanes, and messages.
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::StopReason;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;

template <class X>
void expect_reason(const vt::Solution<X>& s, StopReason wanted) {
  EXPECT_STREQ(vt::name_of(static_cast<StopReason>(s.reason.template item<int>())),
               vt::name_of(wanted));
  EXPECT_EQ(s.converged.template item<bool>(), wanted < StopReason::max_iterations);
}
std::int64_t count(const Tensor& t) { return t.item<std::int64_t>(); }

const Tensor matrix = vt::tensor({{4.0, 1.0, 0.5}, {1.0, 3.0, 0.2}, {0.5, 0.2, 2.0}}),
             right = vt::tensor({1.0, 2.0, -1.0});
const auto product = [](Tensor v) { return vt::matmul(matrix, v); };
const auto divide = [](Tensor v) { return v / vt::diagonal(matrix); };

TEST(SolverReports, LinearSystems) {
  const Tensor exact = vt::linalg::solve(matrix, right);
  const auto check = [&](const auto& s, const Tensor& plain, std::int64_t products) {
    expect_close(s.x, plain);
    expect_close(s.x, exact, {.relative = 1e-9});
    expect_reason(s, StopReason::tolerance);
    EXPECT_EQ(count(s.evaluations), products * count(s.iterations));
    EXPECT_LE(count(s.iterations), 4);
    EXPECT_LT(s.value.template item<double>(), 1e-9);
  };
  check(vt::cg(product, right, vt::with_report), vt::cg(product, right), 1);
  check(vt::cg(product, right, divide, vt::with_report), vt::cg(product, right, divide), 1);
  check(vt::bicgstab(product, right, vt::with_report), vt::bicgstab(product, right), 2);
  const auto early = vt::cg(product, right, vt::with_report, {.max_iterations = 1});
  expect_reason(early, StopReason::max_iterations);
  EXPECT_NEAR(early.value.item<double>(), vt::norm(right - product(early.x)).item<double>(), 1e-14);
  expect_reason(vt::cg(product, right * std::nan(""), vt::with_report), StopReason::not_finite);
  const auto zero = vt::bicgstab(product, 0.0 * right, vt::with_report);
  expect_reason(zero, StopReason::tolerance);
  EXPECT_EQ(count(zero.iterations), 0);
  const auto pair = vt::cg(
      [](const std::pair<Tensor, Tensor>& v) { return std::pair(2.0 * v.first, 4.0f * v.second); },
      std::pair(right, vt::tensor(1.0f)), vt::with_report);
  EXPECT_EQ(pair.x.second.dtype(), vt::f32);
  EXPECT_EQ(pair.x.second.item<float>(), 0.25f);
}

TEST(SolverReports, RootsAndFixedPoints) {
  const auto root = vt::newton([](Tensor x) { return x * x - 2.0; }, 1.0, vt::with_report);
  EXPECT_NEAR(root.x.item<double>(), std::sqrt(2.0), 1e-11);
  EXPECT_EQ(count(root.iterations), 4);
  EXPECT_EQ(count(root.evaluations), 5);
  expect_reason(root, StopReason::tolerance);
  const auto none = [](Tensor x) { return x * x + 1.0; };
  expect_reason(vt::newton(none, 0.7, vt::with_report), StopReason::max_iterations);
  expect_reason(vt::newton(none, 0.0, vt::with_report), StopReason::singular);
  expect_reason(vt::newton([](Tensor x) { return vt::log(x); }, -1.0, vt::with_report),
                StopReason::not_finite);
  const auto cosine = [](Tensor x) { return vt::cos(x); };
  const auto fixed = vt::fixed_point(cosine, 1.0, vt::with_report);
  expect_close(fixed.x, vt::fixed_point(cosine, 1.0));
  expect_reason(fixed, StopReason::tolerance);
  const auto grows = vt::fixed_point([](Tensor x) { return 2.0 * x; }, 1.0, vt::with_report,
                                     {.max_iterations = 5});
  EXPECT_EQ(grows.x.item<double>(), 32);
  EXPECT_EQ(grows.value.item<double>(), 32);
  expect_reason(grows, StopReason::max_iterations);
}

TEST(SolverReports, DerivativesAreThoseWithout) {
  using Function = std::function<Tensor(Tensor)>;
  const auto scaled = [](Tensor d) {
    return [=](Tensor v) { return vt::matmul(matrix, v) * d[0] + d * d * v; };
  };
  const auto cubic = [](Tensor d) { return [=](Tensor x) { return x * x * x + x - d; }; };
  const auto shrink = [](Tensor d) { return [=](Tensor x) { return 0.3 * vt::sin(x) + d; }; };
  const std::pair<Function, Function> both[] = {
      {[=](Tensor d) { return vt::bicgstab(scaled(d), right * d, vt::with_report).x; },
       [=](Tensor d) { return vt::bicgstab(scaled(d), right * d); }},
      {[=](Tensor d) {
         return vt::cg([=](Tensor v) { return d[0] * product(v); }, right * d,
                       [=](Tensor v) { return v / d[0]; }, vt::with_report)
             .x;
       },
       [=](Tensor d) { return vt::cg([=](Tensor v) { return d[0] * product(v); }, right * d); }},
      {[=](Tensor d) { return vt::newton(cubic(d), right, vt::with_report).x; },
       [=](Tensor d) { return vt::newton(cubic(d), right); }},
      {[=](Tensor d) { return vt::fixed_point(shrink(d), right, vt::with_report).x; },
       [=](Tensor d) { return vt::fixed_point(shrink(d), right); }}};
  const Tensor d = vt::tensor({1.0, 2.0, 1.5}), lanes = vt::stack({d, 2.0 * d});
  constexpr vt_test::Tolerance near{.relative = 1e-8, .absolute = 1e-9};
  for (const auto& [report, plain] : both) {
    const Tensor slope = vt::jacfwd(plain)(d);
    expect_close(vt::jacfwd(report)(d), slope, near);
    expect_close(vt::jit(vt::jacrev(report))(d), slope, near);
    expect_close(vt::vmap(vt::jacrev(report))(lanes)[0], slope, near);
    const auto sum = [&](Tensor d) { return vt::sum(vt::vmap(report)(d)); };
    expect_close(vt::grad(sum)(lanes)[0], vt::sum(slope, 0), near);
    expect_close(vt::jacfwd(vt::jacrev(report))(d), vt::jacfwd(vt::jacrev(plain))(d),
                 {.relative = 1e-7, .absolute = 1e-8});
  }
}

TEST(SolverReports, LanesAreTheLoop) {
  const Tensor ys = vt::tensor({4.0, 1.0, -1.0, 0.0, 1e6});
  const auto solve = [](Tensor y) {
    const auto s = vt::newton([=](Tensor x) { return x * x - y; }, 1.0, vt::with_report);
    return std::tuple(s.x, s.iterations, s.reason);
  };
  const auto all = vt::jit(vt::vmap(solve))(ys);
  for (std::int64_t i = 0; i < ys.dim(0); ++i) {
    const auto one = solve(ys[i]);
    EXPECT_EQ(count(std::get<1>(all)[i]), count(std::get<1>(one)));
    EXPECT_EQ(std::get<2>(all)[i].item<int>(), std::get<2>(one).item<int>());
  }
}

// A lane that has ended gives its place to another: of all solvers, the iterations that there was
// room for are those that lanes needed, and a tenth. Where an iteration is a few operations,
// changing lanes costs more than some iterations in vain.
TEST(SolverReports, NoLaneWaitsForAnother) {
  if (vt_test::forced_backend() == "interpreter") GTEST_SKIP() << "nothing is compiled";
  const auto rosenbrock = [](Tensor x) {
    const std::int64_t n = x.size();
    const Tensor a = x[vt::slice(0, n - 1)], b = x[vt::slice(1, n)];
    return vt::sum(100.0 * vt::square(b - a * a) + vt::square(1.0 - a));
  };
  const auto minimise = [&](vt::MinimizeMethod method) {
    return [=](Tensor x) { return vt::minimize(rosenbrock, x, {.method = method}).evaluations; };
  };
  const auto fit = [](Tensor x) {
    const Tensor t = vt::linspace(0.0, 3.0, 20), y = (1.0 + 0.5 * x[0]) * vt::exp(-1.5 * t);
    const auto residuals = [=](Tensor p) {
      return vt::exp(-p[0] * t) * p[1] - y - 0.1 * vt::sin(3.0 * x[1] * t);
    };
    return vt::least_squares(residuals, vt::tensor({1.0, 1.0})).iterations;
  };
  const auto integrate = [](vt::OdeMethod method) {
    return [=](Tensor x) {
      const auto slope = [=](Tensor, Tensor y) {
        return vt::stack({y[1], (1.0 - y[0] * y[0]) * y[1] * (2.0 + x[1]) - y[0]});
      };
      const auto s = vt::odeint(slope, x, {.method = method, .t1 = 3.0 + 2.0 * vt::tanh(x[0])});
      return s.iterations + s.rejected;
    };
  };
  const auto above = [](Tensor x) {
    return [=](Tensor u) { return u * u * u + vt::exp(u) - x[0]; };
  };
  const auto valley = [](Tensor x) {
    return [=](Tensor u) { return vt::square(u - x[0]) + vt::cos(u); };
  };
  const auto root = [](Tensor x) {
    const auto f = [=](Tensor u) { return u * u * u + u - 10.0 * x[0]; };
    return vt::newton(f, 0.0, vt::with_report).iterations;
  };
  const auto fixed = [](Tensor x) {
    const auto f = [=](Tensor u) { return vt::tanh(x[0]) * vt::cos(u); };
    return vt::fixed_point(f, 0.0, vt::with_report).iterations;
  };
  const auto linear = [](Tensor x) {
    const Tensor a =
        vt::eye(6, vt::f64) + vt::matmul(vt::expand_dims(x, 1), vt::expand_dims(vt::sin(x), 0));
    const auto product = [=](Tensor v) { return vt::matmul(a, v) + 0.1 * v * vt::abs(x); };
    return vt::bicgstab(product, x + 1.0, vt::with_report).iterations;
  };
  struct Case {
    const char* name;
    std::int64_t n;
    double spread;
    std::function<Tensor(Tensor)> iterations;
    double most = 1.1;
  };
  const Case cases[] = {
      {"L-BFGS", 2, 2.0, minimise(vt::MinimizeMethod::l_bfgs)},
      {"L-BFGS, pairs of 144 elements", 12, 0.5, minimise(vt::MinimizeMethod::l_bfgs)},
      {"Newton in a trust region", 3, 2.0, minimise(vt::MinimizeMethod::newton)},
      {"least_squares", 2, 0.5, fit},
      {"tsit5", 2, 0.5, integrate(vt::OdeMethod::tsit5)},
      {"rodas5p", 2, 0.5, integrate(vt::OdeMethod::rodas5p)},
      {"bicgstab", 6, 1.0, linear, 1.3},
      {"brentq", 1, 1.0, [=](Tensor x) { return vt::brentq(above(x), -20.0, 20.0).evaluations; }},
      {"bisect", 1, 1.0, [=](Tensor x) { return vt::bisect(above(x), -20.0, 20.0).evaluations; }},
      {"brent", 1, 1.0, [=](Tensor x) { return vt::brent(valley(x), -5.0, 5.0).evaluations; }},
      {"golden", 1, 1.0, [=](Tensor x) { return vt::golden(valley(x), -5.0, 5.0).evaluations; }},
      {"newton", 1, 1.0, root, 1.3},
      {"fixed_point", 1, 1.0, fixed, 1.3},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.name);
    const Tensor x = c.spread * vt::random::normal(vt::random::key(1), {10'000, c.n}, vt::f64);
    const auto solve = vt::jit(vt::vmap(c.iterations));
    (void)vt::sum(solve(x)).item<std::int64_t>();
    vt::reset_lane_stats();
    const auto needed = static_cast<double>(count(vt::sum(solve(x))));
    double lanes = 0, places = 0;
    for (const vt::LaneBlock& b : vt::lane_stats().blocks)
      lanes += static_cast<double>(b.lanes), places += static_cast<double>(b.places);
    EXPECT_GE(lanes, 0.9 * needed) << "not counted";
    EXPECT_LE(places, c.most * std::max(needed, lanes));
  }
}

TEST(SolverReports, WrongUses) {
  expect_error([] { (void)vt::cg([](Tensor v) { return v + 1.0; }, right, vt::with_report); },
               ErrorKind::transform, {"vt::cg: matvec must be linear", "solver_reports_test.cpp"});
  expect_error([] { (void)vt::cg(product, right, vt::with_report, {.tolerance = -1}); },
               ErrorKind::value, {"vt::cg: tolerance is -1"});
  const std::vector<Tensor> empty;
  const auto same = [](const std::vector<Tensor>& v) { return v; };
  expect_error([&] { (void)vt::cg(same, empty, vt::with_report); }, ErrorKind::tree,
               {"vt::cg: b holds no Tensor"});
  expect_error([&] { (void)vt::newton(same, empty); }, ErrorKind::tree,
               {"vt::newton: the guess holds no Tensor"});
}

}  // namespace
