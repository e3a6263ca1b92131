// minimize: against known minima, differences and loops over lanes; trees, single precision, trials
// that are not finite, kinks, why it ends, derivatives, and messages.
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::MinimizeMethod;
using vt::MinimizeOptions;
using vt::StopReason;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::Tolerance;

using Function = std::function<Tensor(Tensor)>;
constexpr MinimizeMethod methods[] = {MinimizeMethod::l_bfgs, MinimizeMethod::newton};
constexpr Tolerance near{.relative = 2e-7, .absolute = 2e-8},
    same{.relative = 1e-7, .absolute = 1e-7};

template <class X>
void expect_reason(const vt::Solution<X>& s, StopReason wanted) {
  EXPECT_STREQ(vt::name_of(static_cast<StopReason>(s.reason.template item<int>())),
               vt::name_of(wanted));
  EXPECT_EQ(s.converged.template item<bool>(), wanted < StopReason::max_iterations);
}
double number(const Tensor& t) { return t.item<double>(); }
std::int64_t count(const Tensor& t) { return t.item<std::int64_t>(); }

Tensor rosenbrock(const Tensor& x) {
  const std::int64_t n = x.size();
  const Tensor a = x[vt::slice(0, n - 1)], b = x[vt::slice(1, n)];
  return vt::sum(100.0 * vt::square(b - a * a) + vt::square(1.0 - a));
}
Tensor usual_start(std::int64_t n) {
  return vt::where(vt::arange(n) % 2 == 0, -1.2, Tensor(1.0)).astype(vt::f64);
}

// --- values --------------------------------------------------------------------------------------

TEST(Minimize, KnownMinima) {
  for (const MinimizeMethod method : methods) {
    SCOPED_TRACE(static_cast<int>(method));
    const MinimizeOptions o{.method = method};
    const auto valley = vt::minimize(rosenbrock, usual_start(2), o);
    expect_close(valley.x, vt::ones({2}, vt::f64), same);
    expect_reason(valley, StopReason::gtol);
    EXPECT_LT(count(valley.evaluations), 60);
    EXPECT_LE(count(valley.iterations) + 1, count(valley.evaluations));
    EXPECT_EQ(number(valley.value), number(rosenbrock(valley.x)));
    // Curvatures from 1 to 10⁶.
    const Tensor curvature = vt::exp(vt::linspace(0.0, std::log(1e6), 12, vt::f64));
    const auto bowl = [&](Tensor x) { return 0.5 * vt::sum(curvature * vt::square(x - 2.0)); };
    const auto stretched = vt::minimize(bowl, vt::zeros({12}, vt::f64), o);
    expect_close(stretched.x, vt::full({12}, 2.0, vt::f64), same);
    EXPECT_TRUE(stretched.converged.item<bool>());
    // Beale's function.
    const auto beale = [](Tensor x) {
      return vt::square(1.5 - x[0] + x[0] * x[1]) + vt::square(2.25 - x[0] + x[0] * x[1] * x[1]) +
             vt::square(2.625 - x[0] + x[0] * x[1] * x[1] * x[1]);
    };
    expect_close(vt::minimize(beale, vt::tensor({1.0, 1.0}), o).x, vt::tensor({3.0, 0.5}), same);
    // Of one parameter, and one whose value is large.
    EXPECT_NEAR(number(vt::minimize([](Tensor x) { return vt::cosh(x - 1.0); }, 3.0, o).x), 1,
                1e-8);
    const auto high = vt::minimize([](Tensor x) { return 1e9 + vt::sum(vt::cosh(x - 1.0)); },
                                   vt::tensor({2.0, -1.0}), o);
    expect_close(high.x, vt::ones({2}, vt::f64), {.absolute = 1e-6});
    EXPECT_TRUE(high.converged.item<bool>());
    // Where it starts at the minimum.
    const auto there =
        vt::minimize([](Tensor x) { return vt::sum(x * x); }, vt::zeros({2}, vt::f64),
                     {.method = method, .ftol = 0.0, .gtol = 0.0});
    expect_reason(there, StopReason::gtol);
    EXPECT_EQ(count(there.evaluations), 1);
  }
}

TEST(Minimize, AHundredParameters) {
  const auto valley = vt::minimize(rosenbrock, usual_start(100));
  expect_close(valley.x, vt::ones({100}, vt::f64), same);
  expect_reason(valley, StopReason::gtol);
  for (const std::int64_t history : {1, 3, 20}) {
    SCOPED_TRACE(history);
    const auto s = vt::minimize(rosenbrock, usual_start(100), {.history = history});
    EXPECT_TRUE(s.converged.item<bool>());
    expect_close(vt::grad(rosenbrock)(s.x), vt::zeros({100}, vt::f64), {.absolute = 1e-6});
  }
}

// L-BFGS takes the step that BFGS takes as long as it remembers all: on a quadratic function of few
// parameters, with a matrix and vectors written out here.
TEST(Minimize, StepsAreThoseOfTheFormula) {
  const int n = 3;
  const double a[n][n] = {{4, 1, 0.5}, {1, 3, 0.25}, {0.5, 0.25, 2}}, b[n] = {1, -2, 0.5};
  const Tensor matrix = vt::tensor({{4.0, 1.0, 0.5}, {1.0, 3.0, 0.25}, {0.5, 0.25, 2.0}}),
               right = vt::tensor({1.0, -2.0, 0.5});
  const auto f = [&](Tensor x) {
    return 0.5 * vt::dot(x, vt::matmul(matrix, x)) - vt::dot(right, x);
  };
  // Two steps by hand, both of the length that is tried first.
  const auto slope = [&](const double* x, double* g) {
    for (int i = 0; i < n; ++i) {
      g[i] = -b[i];
      for (int k = 0; k < n; ++k) g[i] += a[i][k] * x[k];
    }
  };
  double x[n] = {0.3, -0.4, 0.2}, g[n], next[n], gn[n];
  slope(x, g);
  double length = 0;
  for (const double v : g) length += v * v;
  const double t = 0.2 / std::sqrt(length);
  for (int i = 0; i < n; ++i) next[i] = x[i] - t * g[i];
  slope(next, gn);
  double sy = 0, yy = 0, sg = 0, yg = 0;
  for (int i = 0; i < n; ++i) {
    const double s = next[i] - x[i], y = gn[i] - g[i];
    sy += s * y, yy += y * y, sg += s * gn[i], yg += y * gn[i];
  }
  double second[n];
  for (int i = 0; i < n; ++i) {
    const double s = next[i] - x[i], y = gn[i] - g[i], gamma = sy / yy, rho = 1 / sy;
    const double alpha = rho * sg, beta = rho * gamma * (yg - alpha * yy);
    second[i] = next[i] - (gamma * (gn[i] - alpha * y) + s * (alpha - beta));
  }
  const auto s =
      vt::minimize(f, vt::tensor({0.3, -0.4, 0.2}), {.max_iterations = 2, .initial_step = 0.2});
  if (count(s.evaluations) == 3)
    expect_close(s.x, vt::tensor({second[0], second[1], second[2]}), {.relative = 1e-12});
  const auto first =
      vt::minimize(f, vt::tensor({0.3, -0.4, 0.2}), {.max_iterations = 1, .initial_step = 0.2});
  EXPECT_EQ(count(first.evaluations), 2);
  expect_close(first.x, vt::tensor({next[0], next[1], next[2]}), {.relative = 1e-13});
  EXPECT_EQ(count(s.evaluations), 3);
}

// Sums whose rounding errors hide what the last steps gain: these are judged by slopes.
TEST(Minimize, GradientsBecomeSmallerThanTheRootOfErrors) {
  const auto normal = [](std::uint64_t seed, const vt::Shape& shape) {
    return vt::random::normal(vt::random::key(seed), shape, vt::f64);
  };
  const Tensor x = normal(6, {40, 6}), y = (normal(7, {40}) > 0.0).astype(vt::f64);
  const auto logistic = [=](Tensor w) {
    const Tensor z = vt::matmul(x, w);
    return 100.0 + vt::sum(vt::logaddexp(vt::zeros_like(z), z) - y * z) + 1e-3 * vt::sum(w * w);
  };
  for (const MinimizeMethod method : methods) {
    const auto solve = [=](Tensor start) {
      const auto s = vt::minimize(logistic, start, {.method = method});
      return std::pair(vt::max(vt::abs(vt::grad(logistic)(s.x))), s.converged);
    };
    const auto [slope, converged] = vt::jit(vt::vmap(solve))(10.0 * normal(8, {100, 6}));
    EXPECT_LT(number(vt::max(slope)), 1e-7);
    EXPECT_TRUE(vt::all(converged).item<bool>());
  }
}

struct Parameters {
  Tensor scale;
  std::vector<Tensor> rest;
};
TEST(Minimize, TreesAndPrecisions) {
  for (const MinimizeMethod method : methods) {
    const MinimizeOptions o{.method = method};
    const auto f = [](const Parameters& p) {
      return vt::square(p.scale - 3.0) + vt::sum(vt::square(p.rest[0] * p.scale - 6.0));
    };
    const auto s =
        vt::minimize(f, Parameters{vt::tensor(1.0), {vt::tensor({{0.5, 0.5}, {1.0, 4.0}})}}, o);
    EXPECT_NEAR(number(s.x.scale), 3, 1e-7);
    expect_close(s.x.rest[0], vt::full({2, 2}, 2.0, vt::f64), same);
    const auto coarse = vt::minimize(rosenbrock, vt::tensor({-1.2f, 1.0f}), o);
    EXPECT_EQ(coarse.x.dtype(), vt::f32);
    EXPECT_EQ(coarse.value.dtype(), vt::f32);
    EXPECT_TRUE(coarse.converged.item<bool>());
    expect_close(coarse.x, vt::tensor({1.0f, 1.0f}), {.relative = 1e-3});
    const auto mixed = vt::minimize(
        [](const std::pair<Tensor, Tensor>& p) {
          return vt::square(p.first - 3.0f) + vt::square(p.second - 4.0);
        },
        std::pair(vt::tensor(1.0f), vt::tensor(1.0)), o);
    EXPECT_EQ(mixed.x.first.dtype(), vt::f32);
    EXPECT_EQ(mixed.x.second.dtype(), vt::f64);
    EXPECT_NEAR(mixed.x.first.item<float>(), 3, 1e-4);
    EXPECT_NEAR(number(mixed.x.second), 4, 1e-4);
  }
}

// --- how it ends ---------------------------------------------------------------------------------

TEST(Minimize, TrialsThatAreNotFiniteAreRejected) {
  for (const MinimizeMethod method : methods) {
    SCOPED_TRACE(static_cast<int>(method));
    const MinimizeOptions o{.method = method}, far{.method = method, .initial_step = 100};
    const auto barrier = [](Tensor x) { return vt::sum(x - 2.0 * vt::log(x)); };
    for (const MinimizeOptions& options : {o, far}) {
      const auto s = vt::minimize(barrier, vt::tensor({50.0, 0.01}), options);
      expect_close(s.x, vt::tensor({2.0, 2.0}), same);
      EXPECT_TRUE(s.converged.item<bool>());
    }
    const auto start = vt::minimize([](Tensor x) { return vt::log(x); }, -1.0, o);
    expect_reason(start, StopReason::not_finite);
    EXPECT_EQ(number(start.x), -1);
    EXPECT_EQ(count(start.evaluations), 1);
    expect_reason(vt::minimize([](Tensor x) { return vt::sqrt(x); }, 0.0, o),
                  StopReason::not_finite);
    // Nothing but the start is finite.
    const auto alone = vt::minimize(
        [](Tensor x) { return vt::sum(x) + vt::where(vt::all(x == 0.5), 0.0, std::nan("")); },
        vt::tensor({0.5, 0.5}), o);
    expect_reason(alone, StopReason::small_step);
    expect_close(alone.x, vt::tensor({0.5, 0.5}));
  }
}

TEST(Minimize, KinksAndSaddles) {
  const Tensor corner = vt::tensor({0.3, -0.2, 0.1});
  const auto kinks = [&](Tensor x) {
    return vt::sum(vt::tensor({1.0, 3.0, 2.0}) * vt::abs(x - corner));
  };
  const auto sharp = vt::minimize(kinks, vt::tensor({2.0, -1.0, 0.7}));
  expect_close(sharp.x, corner, {.absolute = 1e-9});
  EXPECT_LT(count(sharp.evaluations), 1000);
  const auto steps = vt::minimize(kinks, vt::tensor({2.0, -1.0, 0.7}),
                                  {.method = MinimizeMethod::newton, .max_iterations = 50});
  EXPECT_LT(number(steps.value), 2.0);
  // Newton's method leaves a saddle along the negative curvature, L-BFGS where there is a slope.
  const auto saddle = [](Tensor x) {
    return x[0] * x[0] - x[1] * x[1] + 0.25 * vt::square(x[1] * x[1]);
  };
  const auto s = vt::minimize(saddle, vt::tensor({1.0, 0.0}), {.method = MinimizeMethod::newton});
  expect_close(vt::abs(s.x), vt::tensor({0.0, std::sqrt(2.0)}), same);
  EXPECT_NEAR(number(s.value), -1, 1e-12);
  expect_close(vt::abs(vt::minimize(saddle, vt::tensor({1.0, 0.01})).x),
               vt::tensor({0.0, std::sqrt(2.0)}), same);
}

TEST(Minimize, WhyItEnds) {
  for (const MinimizeMethod method : methods) {
    SCOPED_TRACE(static_cast<int>(method));
    const auto solve = [&](MinimizeOptions o) {
      o.method = method;
      return vt::minimize([](Tensor x) { return 1.0 + vt::sum(vt::cosh(x - 1.0)); },
                          vt::tensor({3.0, -2.0}), o);
    };
    expect_reason(solve({.ftol = 1e-2, .gtol = 0.0}), StopReason::ftol);
    expect_reason(solve({.ftol = 0.0, .xtol = 0.1, .gtol = 0.0}), StopReason::xtol);
    expect_reason(solve({.ftol = 0.0, .gtol = 1e-3}), StopReason::gtol);
    const auto early = solve({.max_iterations = 2});
    expect_reason(early, StopReason::max_iterations);
    EXPECT_EQ(count(early.iterations), 2);
    // Without tolerances no step is left in the end.
    const auto last = solve({.ftol = 0.0, .gtol = 0.0, .max_iterations = 300});
    expect_close(last.x, vt::ones({2}, vt::f64), {.absolute = 1e-7});
    EXPECT_LT(count(last.evaluations), 300);
    // Downhill without end.
    const auto down = vt::minimize([](Tensor x) { return x; }, 0.0, {.method = method});
    EXPECT_FALSE(down.converged.item<bool>());
  }
}

// --- lanes ---------------------------------------------------------------------------------------

TEST(Minimize, LanesAreTheLoop) {
  // One starts at the minimum, one where nothing is finite, one meets NaN on its way.
  const Tensor starts =
      vt::tensor({{-1.2, 1.0}, {1.0, 1.0}, {2.0, -3.0}, {-3.0, 8.0}, {30.0, -4.0}});
  const auto f = [](Tensor x) {
    return vt::square(10.0 * (x[1] - x[0] * x[0])) + vt::square(1.0 - x[0]) +
           0.0 * vt::log(x[0] + 2.0);
  };
  for (const MinimizeMethod method : methods) {
    const auto solve = [=](Tensor start) {
      const auto s = vt::minimize(f, start, {.method = method});
      return std::tuple(s.x, s.value, s.reason);
    };
    const auto all = vt::jit(vt::vmap(solve))(starts);
    for (std::int64_t i = 0; i < starts.dim(0); ++i) {
      const auto one = solve(starts[i]);
      expect_close(std::get<0>(all)[i], std::get<0>(one), {.relative = 1e-7, .absolute = 1e-7});
      expect_close(std::get<2>(all)[i], std::get<2>(one));
    }
  }
}

// Bit for bit where sums have one order: compiled code chooses the order of a sum by the number of
// lanes.
TEST(Minimize, ALaneDoesNotDependOnTheOthers) {
  const Tensor starts = vt::index_update(
      usual_start(4) + vt::random::normal(vt::random::key(1), {40, 4}, vt::f64), 5, std::nan(""));
  const bool exact = vt_test::forced_backend() == "interpreter";
  for (const MinimizeMethod method : methods) {
    const auto solve = vt::jit(vt::vmap([=](Tensor x) {
      const auto s = vt::minimize(rosenbrock, x, {.method = method});
      return std::tuple(s.x, s.value, s.iterations, s.evaluations, s.reason);
    }));
    const auto all = solve(starts);
    EXPECT_EQ(std::get<4>(all)[5].item<int>(), static_cast<int>(StopReason::not_finite));
    for (const std::int64_t lanes : {1, 2, 7, 33}) {
      SCOPED_TRACE(lanes);
      const auto some = solve(starts[vt::slice(0, lanes)]);
      const auto part = [&](const Tensor& whole) { return whole[vt::slice(0, lanes)]; };
      expect_close(std::get<0>(some), part(std::get<0>(all)),
                   exact ? vt_test::exact : Tolerance{.absolute = 1e-6});
      if (!exact) continue;
      expect_close(std::get<1>(some), part(std::get<1>(all)), vt_test::exact);
      expect_close(std::get<2>(some), part(std::get<2>(all)));
      expect_close(std::get<3>(some), part(std::get<3>(all)));
    }
  }
}

// Searches with pairs of 108 elements: of few lanes, too, they take less time than step by step.
TEST(Minimize, AnyNumberOfLanesIsOneFunction) {
  for (const std::int64_t lanes : {1, 2, 8, 63, 64}) {
    const Tensor starts = vt::random::normal(vt::random::key(1), {lanes, 9}, vt::f64).eval();
    const auto f = vt::vmap([](Tensor x) { return vt::minimize(rosenbrock, x).x; });
    const std::string steps = vt::explain(f)(starts);
    if (steps.rfind("interpreter", 0) == 0) GTEST_SKIP() << "no compiler here";
    EXPECT_NE(steps.find("side by side"), std::string::npos) << steps;
  }
}

// --- derivatives ---------------------------------------------------------------------------------

/// Both modes against differences of f itself, of second order too.
void expect_derivatives(const Function& f, const Tensor& x) {
  const Tensor slope = vt_test::numeric_jacobian(f, x);
  expect_close(vt::jacfwd(f)(x), slope, near, "forward");
  expect_close(vt::jit(vt::jacrev(f))(x), slope, near, "reverse, compiled");
  const Tensor lanes = vt::stack({x, x * 1.01});
  expect_close(vt::vmap(vt::jacrev(f))(lanes)[0], slope, near, "reverse in lanes");
  const auto sum = [&](Tensor many) { return vt::sum(vt::vmap(f)(many)[0]); };
  expect_close(vt::grad(sum)(lanes)[0], vt::sum(slope, 0), near, "reverse of lanes");
  const Tensor curve = vt_test::numeric_jacobian(Function(vt::jacfwd(f)), x);
  expect_close(vt::jacfwd(vt::jacrev(f))(x), curve, near, "forward of reverse");
  expect_close(vt::jacrev(vt::jacrev(f))(x), curve, near, "reverse of reverse");
}
TEST(Minimize, DerivativesComeFromTheCondition) {
  for (const MinimizeMethod method : methods)
    expect_derivatives(
        [=](Tensor y) {
          const auto f = [=](Tensor x) {
            return vt::sum(vt::cosh(x - y * y)) + 0.1 * x[0] * x[1] * y[0];
          };
          const auto s = vt::minimize(f, vt::stack({y[0], Tensor(0.5)}), {.method = method});
          return vt::concatenate({s.x, vt::expand_dims(s.value, {0})});
        },
        vt::tensor({0.7, 1.2}));
}

// A function that has no reverse mode is minimised by forward mode.
TEST(Minimize, FunctionsOfAllKinds) {
  const auto f = [](Tensor p) {
    const Tensor d = vt::stack({p[0] * p[0] + 1.0, p[1] + 2.0});
    const auto solve = [=](auto, Tensor right) { return right / d; };
    const Tensor x =
        vt::linear_solve([=](Tensor v) { return d * v; }, vt::ones({2}, vt::f64), solve);
    return vt::sum(vt::square(x - vt::tensor({0.25, 0.4})));
  };
  expect_close(vt::minimize(f, vt::tensor({1.0, 0.3})).x, vt::tensor({std::sqrt(3.0), 0.5}), same);
  const auto by_loop = [](Tensor p) {
    const auto goes_on = [](Tensor v) { return v < 100.0; };
    const auto grow = [=](Tensor v) { return v * (1.5 + p * p); };
    return vt::square(vt::while_loop(goes_on, grow, vt::tensor(1.0)) - 130.0);
  };
  const auto s = vt::minimize(by_loop, 0.4);
  EXPECT_NEAR(number(s.value), 0, 1e-9);
}

// --- messages ------------------------------------------------------------------------------------

TEST(Minimize, WrongUses) {
  const auto with = [](const MinimizeOptions& o) {
    (void)vt::minimize(rosenbrock, usual_start(2), o);
  };
  expect_error([&] { with({.ftol = -1.0}); }, ErrorKind::value,
               {"vt::minimize: ftol is -1", "minimize_test.cpp"});
  expect_error([&] { with({.xtol = std::nan("")}); }, ErrorKind::value, {"xtol is nan"});
  expect_error([&] { with({.gtol = -1e-3}); }, ErrorKind::value, {"gtol is -0.001"});
  expect_error([&] { with({.max_iterations = 0}); }, ErrorKind::value, {"max_iterations is 0"});
  expect_error([&] { with({.history = 0}); }, ErrorKind::value, {"history is 0"});
  expect_error([&] { with({.initial_step = 0.0}); }, ErrorKind::value, {"initial_step is 0"});
  const auto solve = [](auto f, auto guess) { (void)vt::minimize(f, guess); };
  const auto sum = [](Tensor x) { return vt::sum(x * x); };
  expect_error([&] { solve(sum, vt::tensor({1, 2})); }, ErrorKind::dtype,
               {"the parameter of the guess is i32[2]", "write 1.0, not 1"});
  expect_error([&] { solve(sum, vt::ones({2}, vt::f16)); }, ErrorKind::dtype,
               {"f16[2]; parameters are f32 or f64: convert it with astype(vt::f32)"});
  expect_error([&] { solve(sum, vt::ones({2}, vt::c128)); }, ErrorKind::dtype,
               {"c128[2]; parameters are f32 or f64: give vt::real and vt::imag of it"});
  expect_error([&] { solve(sum, vt::zeros({0})); }, ErrorKind::shape,
               {"the guess has no elements"});
  expect_error([&] { solve([](Tensor x) { return x; }, vt::tensor({1.0, 2.0})); }, ErrorKind::shape,
               {"the function gives f64[2]; what is minimised is a scalar"});
  expect_error([&] { solve([](Tensor x) { return x > 0.0; }, 1.0); }, ErrorKind::dtype,
               {"the function gives bool[] where a real float is needed"});
}

}  // namespace
