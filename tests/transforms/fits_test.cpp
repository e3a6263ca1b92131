// least_squares and curve_fit: against SciPy, differences and loops over lanes; bounds, losses,
// fixed parameters, parameters that are moved by the user, trials that are not finite, why it ends,
// and messages. nist_test.cpp has NIST's sets.
#include "support/property.hpp"

namespace {

using vt::ErrorKind;
using vt::LeastSquaresOptions;
using vt::StopReason;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;
using vt_test::Tolerance;

constexpr Tolerance near{.relative = 2e-7, .absolute = 2e-8},
    same{.relative = 1e-8, .absolute = 1e-9}, digits10{.relative = 1e-10};
constexpr vt::LeastSquaresMethod methods[] = {vt::LeastSquaresMethod::normal_equations,
                                              vt::LeastSquaresMethod::qr};

const Tensor times = vt::tensor({0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0});
const Tensor measured = vt::tensor({2.1, 1.62, 1.29, 1.02, 0.8, 0.62, 0.52, 0.37, 0.33});
const Tensor outliers = vt::tensor({2.1, 1.62, 1.29, 1.02, 3.5, 0.62, 0.52, -1.0, 0.33});
Tensor decay(const Tensor& p, const Tensor& t) { return p[0] * vt::exp(-p[1] * t); }
Tensor rosenbrock(const Tensor& x) { return vt::stack({10.0 * (x[1] - x[0] * x[0]), 1.0 - x[0]}); }

/// The fit of a decay to `y`; what besides is captured comes by the options.
auto fitted(const Tensor& y, const LeastSquaresOptions& options = {}) {
  return vt::least_squares([=](Tensor p) { return decay(p, times) - y; }, vt::tensor({1.0, 0.3}),
                           options);
}
template <class X>
StopReason reason_of(const vt::Solution<X>& s) {
  return static_cast<StopReason>(s.reason.template item<int>());
}
template <class X>
void expect_reason(const vt::Solution<X>& s, StopReason wanted) {
  EXPECT_STREQ(vt::name_of(reason_of(s)), vt::name_of(wanted));
  EXPECT_EQ(s.converged.template item<bool>(), wanted < StopReason::max_iterations);
}

// --- values --------------------------------------------------------------------------------------

// The optima by Newton's method in 30 digits on the gradient (mpmath), near SciPy's.
TEST(LeastSquares, LossesAreSciPys) {
  const auto check = [](vt::Loss loss, double a, double b, double value) {
    for (const vt::LeastSquaresMethod method : methods) {
      const auto s = fitted(outliers, {.loss = loss, .loss_scale = 0.1, .method = method});
      expect_close(s.x, vt::tensor({a, b}), same);
      expect_close(s.value, vt::tensor(value), digits10);
      EXPECT_TRUE(s.converged.item<bool>());
    }
  };
  check(vt::Loss::linear, 2.233464350279378, 0.39343818248225415, 4.4304618104858115);
  check(vt::Loss::huber, 2.0903981294370143, 0.47515478543082106, 0.3997706353104273);
  check(vt::Loss::cauchy, 2.0826021219243515, 0.475347696799833, 0.060192902666225351);
  check(vt::Loss::soft_l1, 2.0908036644554981, 0.47519031941203263, 0.39030239891212536);
}

// From a guess where all residuals are far out, where the losses hardly curve.
TEST(LeastSquares, RobustLossesTakeFewSteps) {
  const Tensor x = vt::arange(20).astype(vt::f64);
  Tensor y = 2.0 * x + 1.0 + 0.1 * vt::sin(7.0 * x);
  y = vt::at(vt::at(y, 3).add(30.0), 11).add(-20.0);
  const auto line = [&](Tensor p) { return p[0] * x + p[1] - y; };
  for (const vt::Loss loss : {vt::Loss::huber, vt::Loss::cauchy, vt::Loss::soft_l1}) {
    const auto s =
        vt::least_squares(line, vt::tensor({1.0, 0.0}), {.loss = loss, .loss_scale = 0.3});
    EXPECT_TRUE(s.converged.item<bool>());
    EXPECT_LE(s.iterations.item<int>(), 30);
    EXPECT_NEAR(s.x[0].item<double>(), 2.0, 0.02);
  }
}

// Tolerances relative to parameters and residuals are never met there.
TEST(LeastSquares, NothingToFitConverges) {
  for (const vt::DType dtype : {vt::f32, vt::f64}) {
    const Tensor x = vt::arange(30).astype(dtype);
    const auto s = vt::least_squares([&](Tensor p) { return p[0] * x + p[1]; },
                                     vt::tensor({1.0, 0.5}).astype(dtype));
    expect_reason(s, StopReason::gtol);
  }
}

// SciPy 1.17, method trf.
TEST(LeastSquares, BoundsAreKept) {
  for (const vt::LeastSquaresMethod method : methods) {
    const auto s =
        fitted(measured, {.lower = 0.0, .upper = vt::tensor({1.9, 0.45}), .method = method});
    EXPECT_EQ(s.x[0].item<double>(), 1.9);
    EXPECT_NEAR(s.x[1].item<double>(), 0.42874032, 1e-8);
    EXPECT_NEAR(s.value.item<double>(), 0.027362147450003777, 1e-12);
    EXPECT_TRUE(s.converged.item<bool>());
    const auto corner = vt::least_squares([](Tensor x) { return x - 2.0; }, vt::tensor({0.0, 0.0}),
                                          {.upper = 1.0, .method = method});
    expect_close(corner.x, vt::tensor({1.0, 1.0}));
    expect_reason(corner, StopReason::gtol);
    // A guess outside is moved to the bound.
    const auto moved = vt::least_squares([](Tensor x) { return x + 3.0; }, vt::tensor({-5.0, 7.0}),
                                         {.lower = -1.0, .method = method});
    expect_close(moved.x, vt::tensor({-1.0, -1.0}));
  }
  const auto valley =
      vt::least_squares(rosenbrock, vt::tensor({-1.2, 1.0}), {.upper = vt::tensor({0.5, 10.0})});
  expect_close(valley.x, vt::tensor({0.5, 0.25}), same);
}

// Random problems in random boxes: no slope leads on within the box.
TEST(LeastSquares, SolutionsInBoxesAreStationary) {
  const auto normal = [](std::uint64_t seed, const vt::Shape& shape) {
    return vt::random::normal(vt::random::key(seed), shape, vt::f64);
  };
  const Tensor a = normal(1, {100, 12, 6}), b = 3.0 * normal(2, {100, 12}),
               low = -vt::abs(normal(3, {100, 6})), high = vt::abs(normal(4, {100, 6})),
               start = 3.0 * normal(5, {100, 6});
  for (const vt::LeastSquaresMethod method : methods) {
    const auto slopes = [&](Tensor a, Tensor b, Tensor low, Tensor high, Tensor start) {
      const auto residuals = [=](Tensor x) { return vt::matmul(a, x + 0.3 * x * x * x) - b; };
      const auto s =
          vt::least_squares(residuals, start, {.lower = low, .upper = high, .method = method});
      const auto value = [&](Tensor x) { return 0.5 * vt::sum(vt::square(residuals(x))); };
      const Tensor g = vt::grad(value)(s.x);
      const Tensor held = ((s.x <= low) & (g > 0.0)) | ((s.x >= high) & (g < 0.0));
      return std::tuple(vt::where(held, 0.0, g), vt::all((s.x >= low) & (s.x <= high)), s.converged,
                        vt::any(held));
    };
    const auto [slope, inside, converged, held] = vt::vmap(slopes)(a, b, low, high, start);
    expect_close(slope, vt::zeros_like(slope), {.absolute = 1e-8});
    EXPECT_TRUE(vt::all(inside & converged).item<bool>());
    EXPECT_TRUE(vt::any(held).item<bool>());
  }
}

TEST(LeastSquares, FixedParametersStay) {
  for (const vt::LeastSquaresMethod method : methods) {
    const auto s = fitted(measured, {.fixed = vt::tensor({true, false}), .method = method});
    EXPECT_EQ(s.x[0].item<double>(), 1.0);
    const auto alone = vt::least_squares([](Tensor b) { return vt::exp(-b * times) - measured; },
                                         0.3, {.method = method});
    EXPECT_NEAR(s.x[1].item<double>(), alone.x.item<double>(), 1e-10);
    const auto all = fitted(measured, {.fixed = true, .method = method});
    expect_close(all.x, vt::tensor({1.0, 0.3}));
    EXPECT_EQ(all.iterations.item<std::int64_t>(), 0);
  }
}

struct Parameters {
  Tensor scale;
  std::vector<Tensor> rest;
};
TEST(LeastSquares, TreesOfParametersAndResiduals) {
  const auto residuals = [](const Parameters& p) {
    return std::pair(p.scale - 3.0, p.rest[0] * p.scale - vt::tensor({1.0, 2.0}));
  };
  const Parameters guess{vt::tensor(1.0), {vt::tensor({0.5, 0.5})}};
  const auto s = vt::least_squares(residuals, guess);
  EXPECT_NEAR(s.x.scale.item<double>(), 3, 1e-12);
  expect_close(s.x.rest[0], vt::tensor({1.0 / 3, 2.0 / 3}), same);
  const auto bounded =
      vt::least_squares(residuals, guess,
                        {.upper = Parameters{vt::tensor(2.0), {vt::tensor(0.75)}},
                         .fixed = Parameters{vt::tensor(false), {vt::tensor({true, false})}}});
  EXPECT_EQ(bounded.x.scale.item<double>(), 2);
  expect_close(bounded.x.rest[0], vt::tensor({0.5, 0.75}));
  // Numbers, and leaves of different dtypes.
  const auto number = vt::least_squares([](Tensor x) { return x * x - 2.0; }, 1.0);
  EXPECT_NEAR(number.x.item<double>(), std::sqrt(2.0), 1e-14);
  const auto mixed = vt::least_squares(
      [](const std::pair<Tensor, Tensor>& p) { return std::pair(p.first - 3.0f, p.second - 4.0); },
      std::pair(vt::tensor(1.0f), vt::tensor(1.0)));
  EXPECT_EQ(mixed.x.first.dtype(), vt::f32);
  EXPECT_EQ(mixed.x.second.dtype(), vt::f64);
  EXPECT_EQ(mixed.x.first.item<float>(), 3.0f);
  // The model is only as precise as its f32 parameter.
  const auto coarse = vt::least_squares(
      [](const std::pair<Tensor, Tensor>& p) {
        return p.second * vt::exp(-p.first * times) - measured;
      },
      std::pair(vt::tensor(0.3f), vt::tensor(1.0)));
  EXPECT_LT(coarse.iterations.item<std::int64_t>(), 30);
  EXPECT_TRUE(coarse.converged.item<bool>());
}

TEST(LeastSquares, SinglePrecision) {
  for (const vt::LeastSquaresMethod method : methods) {
    const auto s = vt::least_squares(rosenbrock, vt::tensor({-1.2f, 1.0f}), {.method = method});
    EXPECT_EQ(s.x.dtype(), vt::f32);
    EXPECT_EQ(s.value.dtype(), vt::f32);
    expect_close(s.x, vt::tensor({1.0f, 1.0f}), {.relative = 1e-5});
    EXPECT_TRUE(s.converged.item<bool>());
    const Tensor t = times.astype(vt::f32), y = measured.astype(vt::f32);
    const auto fit = vt::least_squares([&](Tensor p) { return decay(p, t) - y; },
                                       vt::tensor({1.0f, 0.3f}), {.method = method});
    expect_close(fit.x.astype(vt::f64), fitted(measured).x, {.relative = 1e-5});
    EXPECT_TRUE(fit.converged.item<bool>());
  }
}

TEST(LeastSquares, GaussNewton) {
  const auto s = vt::least_squares(rosenbrock, vt::tensor({-1.2, 1.0}), {.damping = 0});
  expect_close(s.x, vt::tensor({1.0, 1.0}), same);
  // A linear problem takes one step.
  const auto linear = vt::least_squares([](Tensor p) { return p[0] + p[1] * times - measured; },
                                        vt::tensor({0.0, 0.0}), {.damping = 0});
  EXPECT_LE(linear.iterations.item<std::int64_t>(), 2);
}

// --- how it ends ---------------------------------------------------------------------------------

TEST(LeastSquares, TrialsThatAreNotFiniteAreRejected) {
  const auto root = vt::least_squares([](Tensor x) { return vt::sqrt(x - 1.0) - 0.1; }, 50.0);
  EXPECT_NEAR(root.x.item<double>(), 1.01, 1e-12);
  const auto log = vt::least_squares([](Tensor x) { return vt::log(x) + 5.0; }, 20.0);
  EXPECT_NEAR(log.x.item<double>(), std::exp(-5.0), 1e-12);
  // Nothing but the start is finite.
  const auto alone = vt::least_squares(
      [](Tensor x) { return x + vt::where(x == 0.5, 0.0, std::nan("")); }, vt::tensor({0.5}));
  expect_reason(alone, StopReason::small_step);
  EXPECT_EQ(alone.x[0].item<double>(), 0.5);
}

TEST(LeastSquares, WhyItEnds) {
  const auto start = vt::least_squares([](Tensor x) { return vt::log(x); }, -1.0);
  expect_reason(start, StopReason::not_finite);
  EXPECT_EQ(start.iterations.item<std::int64_t>(), 0);
  EXPECT_EQ(start.x.item<double>(), -1.0);
  const auto slope = vt::least_squares([](Tensor x) { return vt::sqrt(x); }, 0.0);
  expect_reason(slope, StopReason::not_finite);
  const auto early = vt::least_squares(rosenbrock, vt::tensor({-1.2, 1.0}), {.max_iterations = 3});
  expect_reason(early, StopReason::max_iterations);
  EXPECT_EQ(early.iterations.item<std::int64_t>(), 3);
  const LeastSquaresOptions by_f{.ftol = 1e-6, .xtol = 0, .gtol = 0},
      by_x{.ftol = 0, .xtol = 1e-6, .gtol = 0}, by_g{.ftol = 0, .xtol = 0, .gtol = 1e-6},
      off{.ftol = 0, .xtol = 0, .gtol = 0};
  expect_reason(fitted(measured, by_f), StopReason::ftol);
  expect_reason(fitted(measured, by_x), StopReason::xtol);
  expect_reason(fitted(measured, by_g), StopReason::gtol);
  expect_close(fitted(measured, by_g).x, fitted(measured).x, {.relative = 1e-5});
  // Without tolerances a step that changes nothing ends it.
  const auto last = fitted(measured, off);
  EXPECT_LT(last.iterations.item<std::int64_t>(), 200);
  expect_close(last.x, fitted(measured).x, same);
  // Nothing is less than 0.
  const auto there = vt::least_squares([](Tensor x) { return x; }, vt::tensor({0.0, 0.0}), off);
  expect_reason(there, StopReason::gtol);
  EXPECT_EQ(there.iterations.item<std::int64_t>(), 0);
  // Parameters that do nothing, and two that do the same.
  const auto idle = vt::least_squares([](Tensor x) { return x * 0.0 + 1.0; }, vt::tensor({3.0}));
  expect_reason(idle, StopReason::gtol);
  for (const vt::LeastSquaresMethod method : methods) {
    const auto twice = vt::least_squares(
        [](Tensor x) { return vt::stack({x[0] + x[1] - 1.0, x[0] + x[1] - 1.0}); },
        vt::tensor({0.5, 4.0}), {.method = method});
    EXPECT_TRUE(twice.converged.item<bool>());
    EXPECT_NEAR(vt::sum(twice.x).item<double>(), 1, 1e-12);
  }
}

// Residuals end at rounding errors, which no step lowers: steps within xtol tell of convergence.
TEST(LeastSquares, FitsWithoutNoiseConverge) {
  for (const vt::DType d : {vt::f64, vt::f32}) {
    const Tensor t = vt::linspace(0.0, 2.0, 20).astype(d);
    const auto model = [=](Tensor p) { return p[0] * vt::exp(-p[1] * t) + p[2]; };
    const auto converged = [=](Tensor p) {
      return vt::least_squares([=](Tensor q) { return model(q) - model(p); }, 0.8 * p + 0.05)
          .converged;
    };
    const Tensor truth = (0.5 + vt::random::uniform(vt::random::key(3), {1000, 3}, vt::f64));
    EXPECT_TRUE(vt::all(vt::vmap(converged)(truth.astype(d))).item<bool>()) << vt::name_of(d);
  }
}

// A parameter that is large or fixed does not end the search for others.
TEST(LeastSquares, SizesOfParametersDoNotMatter) {
  const auto little = [](Tensor p) { return 1e-6 * (vt::exp(p[0]) - 2.0) + 0.0 * p[1]; };
  const Tensor guess = vt::tensor({3.0, 1e9});
  for (const LeastSquaresOptions& o :
       {LeastSquaresOptions{}, LeastSquaresOptions{.fixed = vt::tensor({false, true})}}) {
    const auto s = vt::least_squares(little, guess, o);
    EXPECT_NEAR(s.x[0].item<double>(), std::log(2.0), 1e-12);
    EXPECT_TRUE(s.converged.item<bool>());
  }
  // A peak at a time of day, in seconds since 1970.
  const Tensor at = 1.7e9 + vt::linspace(-5.0, 5.0, 41, vt::f64);
  const auto peak = [&](Tensor p) { return p[0] * vt::exp(-0.5 * vt::square((at - p[1]) / p[2])); };
  const Tensor truth = vt::tensor({3.0, 1.7e9 + 0.25, 1.5});
  const auto s = vt::least_squares([&](Tensor p) { return peak(p) - peak(truth); },
                                   vt::tensor({2.0, 1.7e9, 1.0}));
  EXPECT_NEAR(s.x[0].item<double>(), 3, 1e-6);
  EXPECT_NEAR(s.x[2].item<double>(), 1.5, 1e-6);
}

// --- lanes ---------------------------------------------------------------------------------------

// Lanes that end at different times, one whose start is not finite and one that meets NaN.
const Tensor starts = vt::tensor({{-1.2, 1.0}, {1.0, 1.0}, {2.0, -3.0}, {0.5, 8.0}, {30.0, -4.0}});

TEST(LeastSquares, LanesAreTheLoop) {
  const auto residuals = [](Tensor x) {
    return vt::stack({10.0 * (x[1] - x[0] * x[0]), vt::log(x[0] + 2.0), 0.0 * x[1] + 1.0});
  };
  const auto solve = [&](Tensor start) {
    const auto s = vt::least_squares(residuals, start);
    return std::tuple(s.x, s.value, s.iterations, s.reason);
  };
  const auto all = vt::jit(vt::vmap(solve))(starts);
  for (std::int64_t i = 0; i < starts.dim(0); ++i) {
    const auto one = vt::jit(solve)(starts[i]);
    expect_close(std::get<0>(all)[i], std::get<0>(one), digits10);
    expect_close(std::get<3>(all)[i], std::get<3>(one));
  }
}

// Bit for bit where sums have one order: compiled code chooses the order of a sum by the number of
// lanes.
TEST(LeastSquares, ALaneDoesNotDependOnTheOthers) {
  const Tensor noise = 0.1 * vt::random::normal(vt::random::key(1), {64, 9}, vt::f64);
  const Tensor data = vt::index_update(measured + noise, 5, std::nan(""));
  const Tolerance rounding = vt_test::forced_backend() == "interpreter"
                                 ? vt_test::exact
                                 : Tolerance{.relative = 1e-11, .absolute = 1e-13};
  for (const vt::LeastSquaresMethod method : methods) {
    const auto solve = vt::jit(vt::vmap([&](Tensor y) {
      const auto s = fitted(y, {.method = method});
      return std::tuple(s.x, s.value, s.iterations, s.evaluations, s.converged, s.reason);
    }));
    const auto all = solve(data);
    EXPECT_EQ(std::get<5>(all)[5].item<int>(), static_cast<int>(StopReason::not_finite));
    for (const std::int64_t lanes : {1, 2, 7, 33}) {
      SCOPED_TRACE(lanes);
      const auto some = solve(data[vt::slice(0, lanes)]);
      const auto check = [&](const Tensor& part, const Tensor& whole) {
        expect_close(part, whole[vt::slice(0, lanes)], rounding);
      };
      check(std::get<0>(some), std::get<0>(all));
      check(std::get<1>(some), std::get<1>(all));
      check(std::get<4>(some), std::get<4>(all));
      if (rounding.relative > 0) continue;  // the last step may be one more or less
      check(std::get<2>(some), std::get<2>(all));
      check(std::get<3>(some), std::get<3>(all));
      check(std::get<5>(some), std::get<5>(all));
    }
  }
}

TEST(LeastSquares, BoundsAndMasksOfLanes) {
  const auto solve = [](Tensor upper, Tensor fixed) {
    return fitted(measured, {.upper = upper, .fixed = fixed}).x;
  };
  const Tensor upper = vt::tensor({{1.5, 9.0}, {9.0, 9.0}, {9.0, 0.4}});
  const Tensor fixed = vt::tensor({{false, false}, {true, false}, {false, false}});
  expect_close(vt::vmap(solve)(upper, fixed), vt_test::stack_loop(solve, 0, upper, fixed),
               {.relative = 1e-9});
  // Bounds that cross in one lane leave nothing to find there.
  const auto between = [](Tensor low) {
    const auto s = fitted(measured, {.lower = low, .upper = vt::tensor({9.0, 9.0})});
    return std::pair(s.reason, s.converged);
  };
  const auto [reasons, converged] = vt::vmap(between)(vt::tensor({{0.0, 0.0}, {9.5, 0.0}}));
  expect_close(converged, vt::tensor({true, false}));
  EXPECT_EQ(reasons[1].item<int>(), static_cast<int>(vt::StopReason::not_finite));
}

// What residuals may contain: a loop, another fit, a function without reverse mode.
TEST(LeastSquares, ResidualsOfAllKinds) {
  const auto by_loop = [](Tensor goal) {
    const auto residuals = [=](Tensor p) {
      const auto goes_on = [](Tensor v) { return vt::sum(v) < 100.0; };
      const auto grow = [=](Tensor v) { return v * p + 0.5; };
      return vt::while_loop(goes_on, grow, vt::ones({2}, vt::f64)) - goal;
    };
    return vt::least_squares(residuals, vt::tensor({1.5, 1.3})).x;
  };
  const Tensor goal = vt::tensor({60.0, 50.0});
  const Tensor slope = vt_test::numeric_jacobian(by_loop, goal);
  expect_close(vt::jacfwd(by_loop)(goal), slope, near);
  expect_close(vt::jacrev(by_loop)(goal), slope, near);
  const auto outer = [](Tensor q) {  // p³ + p = q
    const auto inner = [=](Tensor p) { return p * p * p + p - q; };
    return vt::least_squares(inner, vt::tensor({0.5, 0.5})).x - vt::tensor({1.0, 2.0});
  };
  expect_close(vt::least_squares(outer, vt::tensor({1.0, 1.0})).x, vt::tensor({2.0, 10.0}), same);
  const auto forward_only = [](Tensor goal) {
    const auto residuals = [=](Tensor p) {
      const Tensor d = vt::stack({p[0] * p[0] + 1.0, p[1] + 2.0});
      const auto solve = [=](auto, Tensor right) { return right / d; };
      return vt::linear_solve([=](Tensor v) { return d * v; }, vt::ones({2}, vt::f64), solve) -
             goal;
    };
    return vt::least_squares(residuals, vt::tensor({1.0, 0.3})).x;
  };
  const Tensor quarter = vt::tensor({0.25, 0.4});
  expect_close(forward_only(quarter), vt::tensor({std::sqrt(3.0), 0.5}), same);
  expect_close(vt::jacfwd(forward_only)(quarter),
               vt::tensor({{-8.0 / std::sqrt(3.0), 0.0}, {0.0, -6.25}}), near);
}

// --- derivatives ---------------------------------------------------------------------------------

using Function = std::function<Tensor(Tensor)>;

/// Both modes against differences of f itself; `second` derivatives too.
void expect_derivatives(const Function& f, const Tensor& x, const std::string& what,
                        bool second = false) {
  SCOPED_TRACE(what);
  const Tensor slope = vt_test::numeric_jacobian(f, x);
  expect_close(vt::jacfwd(f)(x), slope, near, "forward");
  expect_close(vt::jit(vt::jacrev(f))(x), slope, near, "reverse, compiled");
  const Tensor lanes = vt::stack({x, x * 1.01});
  expect_close(vt::vmap(vt::jacfwd(f))(lanes)[0], slope, near, "forward in lanes");
  expect_close(vt::vmap(vt::jacrev(f))(lanes)[1], vt_test::numeric_jacobian(f, x * 1.01), near,
               "reverse in lanes");
  if (!second) return;
  const Tensor curve = vt_test::numeric_jacobian(Function(vt::jacfwd(f)), x);
  expect_close(vt::jacfwd(vt::jacfwd(f))(x), curve, near, "forward of forward");
  expect_close(vt::jacfwd(vt::jacrev(f))(x), curve, near, "forward of reverse");
  expect_close(vt::jacrev(vt::jacrev(f))(x), curve, near, "reverse of reverse");
}
/// Parameters and value of a fit of few points.
const Tensor few = vt::tensor({0.0, 1.0, 2.0, 3.0});
template <class Options>
Function solution_by(Options options) {
  return [=](Tensor y) {
    const LeastSquaresOptions chosen = options(y);
    const auto s = vt::least_squares([=](Tensor p) { return decay(p, few) - y; },
                                     vt::stack({1.5 + 0.1 * y[1], Tensor(0.4)}), chosen);
    return vt::concatenate({s.x, vt::expand_dims(s.value, {0})});
  };
}

TEST(LeastSquares, DerivativesComeFromTheCondition) {
  const Tensor y = vt::tensor({2.1, 1.25, 0.85, 0.5});
  expect_derivatives(solution_by([](Tensor) { return LeastSquaresOptions(); }), y, "plain", true);
  expect_derivatives(solution_by([](Tensor) {
                       return LeastSquaresOptions{.loss = vt::Loss::cauchy, .loss_scale = 0.2};
                     }),
                     y, "a loss");
  expect_derivatives(
      solution_by([](Tensor y) {
        return LeastSquaresOptions{.upper = vt::stack({1.9 + 0.3 * (y[0] - 2.1), Tensor(9.0)})};
      }),
      y, "a bound that moves");
  expect_derivatives(solution_by([](Tensor) {
                       return LeastSquaresOptions{.fixed = vt::tensor({true, false}),
                                                  .method = vt::LeastSquaresMethod::qr};
                     }),
                     y, "a parameter fixed at a guess that moves");
}

// Where it did not converge: the x at which the gradient stays what it is.
// Lanes report integers too, in any order of transforms.
TEST(LeastSquares, DerivativesOfTheBestOfSeveralStarts) {
  const Tensor starts = vt::tensor({{1.0, 0.3}, {2.0, 0.6}});
  const auto best = [&](Tensor y) {
    const auto all = vt::vmap([&](Tensor start) {
      return vt::least_squares([&](Tensor p) { return decay(p, times) - y; }, start);
    })(starts);
    return all.x[vt::argmin(all.value)];
  };
  const Tensor slope = vt::jacrev([](Tensor y) { return fitted(y).x; })(measured);
  expect_close(vt::jacrev(best)(measured), slope, near, "reverse");
  expect_close(vt::jacfwd(best)(measured), slope, near, "forward");
}

TEST(LeastSquares, DerivativesWhereItDidNotConverge) {
  const auto stopped = [](Tensor y) {
    return vt::least_squares([=](Tensor x) { return vt::exp(x) - y; }, 0.0, {.max_iterations = 1})
        .x;
  };
  const double y = 3, x = stopped(vt::tensor(y)).item<double>(), e = std::exp(x);
  // gradient: eˣ (eˣ − y)
  EXPECT_NEAR(vt::grad(stopped)(vt::tensor(y)).item<double>(), e / (2 * e * e - e * y), 1e-12);
}

// --- parameters that are moved -------------------------------------------------------------------

struct Pose {
  Tensor rotation, shift;
};
Tensor rotation_by(const Tensor& angle) {
  const Tensor c = vt::cos(angle), s = vt::sin(angle);
  return vt::stack({vt::stack({c, -s}), vt::stack({s, c})});
}
Pose plus(const Pose& p, const Tensor& delta) {
  return {vt::matmul(p.rotation, rotation_by(delta[0])),
          p.shift + vt::matmul(p.rotation, delta[vt::slice(1, 3)])};
}
const Tensor corners = vt::tensor({{0.0, 0.0}, {1.0, 0.0}, {0.0, 2.0}});
auto aligned(const Tensor& seen, const LeastSquaresOptions& options = {}) {
  return vt::least_squares(
      [=](const Pose& p) {
        return vt::matmul(corners, vt::transpose(p.rotation)) + p.shift - seen;
      },
      Pose{vt::eye(2, vt::f64), vt::zeros({2}, vt::f64)}, plus, 3, options);
}

TEST(LeastSquares, PosesAreMovedByTheUser) {
  const Tensor turn = rotation_by(vt::tensor(2.5)), shift = vt::tensor({0.3, -0.2});
  const Tensor seen = vt::matmul(corners, vt::transpose(turn)) + shift;
  for (const vt::LeastSquaresMethod method : methods) {
    const auto s = aligned(seen, {.method = method});
    expect_close(s.x.rotation, turn, {.absolute = 1e-12});
    expect_close(s.x.shift, shift, {.absolute = 1e-12});
    EXPECT_TRUE(s.converged.item<bool>());
  }
  // Fixed: the angle.
  const auto held = aligned(seen, {.fixed = vt::tensor({true, false, false})});
  expect_close(held.x.rotation, vt::eye(2, vt::f64));
  const Tensor bent = seen + vt::tensor({{0.1, 0.0}, {0.0, 0.05}, {0.0, -0.1}});
  expect_derivatives(
      [](Tensor flat) {
        const auto s = aligned(vt::reshape(flat, {3, 2}));
        return vt::stack({vt::atan2(s.x.rotation[1][0], s.x.rotation[0][0]), s.x.shift[0],
                          s.x.shift[1], s.value});
      },
      vt::reshape(bent, {6}), "a pose");
}

// --- curve_fit -----------------------------------------------------------------------------------

// SciPy 1.17 `curve_fit`, all tolerances 1e-15.
TEST(CurveFit, CovariancesAreSciPys) {
  const auto model = [](Tensor p, Tensor t) { return decay(p, t); };
  const Tensor guess = vt::tensor({1.0, 1.0});
  const Tensor sigma = vt::tensor({0.05, 0.05, 0.04, 0.04, 0.03, 0.03, 0.02, 0.02, 0.02});
  const auto check = [&](const vt::CurveFitOptions& options, std::vector<double> x,
                         std::vector<double> covariance) {
    const auto c = vt::curve_fit(model, times, measured, guess, options);
    expect_close(c.x, vt::tensor(x), same);
    expect_close(c.covariance, vt::tensor(covariance, {2, 2}), {.relative = 1e-6});
    expect_close(c.standard_errors, vt::sqrt(vt::diagonal(c.covariance)));
    EXPECT_TRUE(c.converged.item<bool>());
  };
  check(
      {}, {2.084725208775923, 0.47833121242827475},
      {0.0002172740025766995, 5.779172887604374e-05, 5.779172887604374e-05, 3.678695314145463e-05});
  check(
      {.sigma = sigma}, {2.079546278567498, 0.4746673048921279},
      {0.000787053927239623, 0.00015525885958793297, 0.00015525885958793297, 5.5429058772062e-05});
  check({.sigma = sigma, .absolute_sigma = true}, {2.079546278567498, 0.4746673048921279},
        {0.0013948607208319026, 0.00027515838153543585, 0.00027515838153543585,
         9.823445916215225e-05});
}

// With a loss J is that whose JᵀJ is near to the second derivative of what is least.
TEST(CurveFit, CovariancesWithLossesAreSciPys) {
  const auto check = [](vt::Loss loss, std::vector<double> covariance) {
    const auto c =
        vt::curve_fit([](Tensor p, Tensor t) { return decay(p, t); }, times, outliers,
                      vt::tensor({1.0, 1.0}), {.solver = {.loss = loss, .loss_scale = 0.1}});
    expect_close(c.covariance, vt::tensor(covariance, {2, 2}), {.relative = 2e-7});
  };
  check(vt::Loss::huber,
        {0.07756161424740605, 0.02267595757540263, 0.02267595757540263, 0.016914502627109793});
  check(vt::Loss::cauchy,
        {0.012887064892542523, 0.00379893316907506, 0.00379893316907506, 0.002780949671431993});
  check(vt::Loss::soft_l1,
        {0.07849010828446809, 0.02280508059731127, 0.02280508059731127, 0.017029020578602873});
}

TEST(CurveFit, PointsAndParametersAreTrees) {
  struct Line {
    Tensor slope;
    Tensor offset;
  };
  const auto model = [](const Line& l, const std::pair<Tensor, Tensor>& x) {
    return vt::stack({vt::dot(l.slope, x.first) + l.offset, x.second * l.offset});
  };
  const Tensor a = vt::tensor({{1.0, 0.0}, {0.0, 1.0}, {1.0, 1.0}, {2.0, 1.0}}),
               b = vt::tensor({1.0, 2.0, 0.5, 1.0});
  const Tensor y = vt::stack({vt::matmul(a, vt::tensor({2.0, 3.0})) + 0.5, b * 0.5}, 1);
  const auto c =
      vt::curve_fit(model, std::pair(a, b), y, Line{vt::zeros({2}, vt::f64), vt::tensor(0.0)});
  expect_close(c.x.slope, vt::tensor({2.0, 3.0}), same);
  EXPECT_NEAR(c.x.offset.item<double>(), 0.5, 1e-12);
  EXPECT_EQ(c.covariance.shape(), vt::Shape({3, 3}));
  EXPECT_EQ(c.standard_errors.slope.shape(), vt::Shape({2}));
}

TEST(CurveFit, WhatTheDataDoNotDetermineIsSingular) {
  const auto twice = [](Tensor p, Tensor t) { return (p[0] + p[1]) * t; };
  const auto c = vt::curve_fit(twice, times, 2.0 * times + 0.1, vt::tensor({0.5, 0.5}));
  EXPECT_EQ(c.reason.item<int>(), static_cast<int>(StopReason::singular));
  EXPECT_FALSE(c.converged.item<bool>());
  EXPECT_TRUE(vt::all(vt::isinf(c.covariance)).item<bool>());
  EXPECT_TRUE(vt::all(vt::isinf(c.standard_errors)).item<bool>());
  // With one of them fixed they are.
  const auto one = vt::curve_fit(twice, times, 2.0 * times + 0.1, vt::tensor({0.5, 0.5}),
                                 {.solver = {.fixed = vt::tensor({true, false})}});
  EXPECT_TRUE(one.converged.item<bool>());
  EXPECT_EQ(one.covariance[0][0].item<double>(), 0);
  EXPECT_GT(one.covariance[1][1].item<double>(), 0);
  // As many points as parameters: only an absolute sigma says anything.
  const auto line = [](Tensor p, Tensor t) { return p[0] + p[1] * t; };
  const Tensor two = vt::tensor({0.0, 1.0}), ys = vt::tensor({1.0, 3.0});
  EXPECT_FALSE(vt::curve_fit(line, two, ys, vt::tensor({0.0, 0.0})).converged.item<bool>());
  const auto absolute = vt::curve_fit(line, two, ys, vt::tensor({0.0, 0.0}),
                                      {.sigma = Tensor(0.5), .absolute_sigma = true});
  EXPECT_TRUE(absolute.converged.item<bool>());
  expect_close(absolute.covariance, vt::tensor({{0.25, -0.25}, {-0.25, 0.5}}), same);
}

TEST(CurveFit, ErrorsHaveDerivatives) {
  for (const bool held : {false, true})
    expect_derivatives(
        [=](Tensor y) {
          const auto model = [](Tensor p, Tensor t) { return decay(p, t); };
          const auto c = vt::curve_fit(model, few, y, vt::tensor({1.5, 0.4}),
                                       {.solver = {.fixed = vt::tensor({held, false})}});
          return c.standard_errors;
        },
        vt::tensor({2.1, 1.25, 0.85, 0.5}), held ? "one held" : "standard errors");
}

// --- messages ------------------------------------------------------------------------------------

TEST(LeastSquares, WrongUses) {
  const auto with = [](const LeastSquaresOptions& o) { (void)fitted(measured, o); };
  expect_error([&] { with({.ftol = -1.0}); }, ErrorKind::value,
               {"vt::least_squares: ftol is -1", "fits_test.cpp"});
  expect_error([&] { with({.xtol = std::nan("")}); }, ErrorKind::value, {"xtol is nan"});
  expect_error([&] { with({.gtol = -1e-3}); }, ErrorKind::value, {"gtol is -0.001"});
  expect_error([&] { with({.max_iterations = 0}); }, ErrorKind::value, {"max_iterations is 0"});
  expect_error([&] { with({.loss_scale = 0.0}); }, ErrorKind::value, {"loss_scale is 0"});
  expect_error([&] { with({.damping = -1.0}); }, ErrorKind::value, {"damping is -1"});
  expect_error([&] { with({.lower = vt::zeros({3}, vt::f64)}); }, ErrorKind::shape,
               {"lower of the parameter is f64[3], which does not broadcast to f64[2]"});
  expect_error([&] { with({.lower = std::pair(0.0, 1.0)}); }, ErrorKind::tree,
               {"lower is neither a number nor a tree like the parameters: it has 2 leaves where "
                "they have 1"});
  expect_error([&] { with({.lower = 1.0, .upper = vt::tensor({2.0, 0.5})}); }, ErrorKind::value,
               {"the lower bound 1 of the parameter is above the upper one, 0.5"});
  expect_error([&] { with({.fixed = 1.0}); }, ErrorKind::dtype, {"fixed holds", "no bool"});
  const auto solve = [](auto f, auto guess) { (void)vt::least_squares(f, guess); };
  const auto same_x = [](Tensor x) { return x; };
  expect_error([&] { solve(same_x, vt::tensor({1, 2})); }, ErrorKind::dtype,
               {"vt::least_squares: the parameter of the guess is i32[2]", "write 1.0, not 1"});
  expect_error([&] { solve(same_x, vt::ones({2}, vt::f16)); }, ErrorKind::dtype,
               {"f16[2]; parameters are f32 or f64: convert it with astype(vt::f32)"});
  expect_error([&] { solve(same_x, vt::complex(vt::ones({2}), vt::ones({2}))); }, ErrorKind::dtype,
               {"c64[2]; parameters are f32 or f64: give vt::real and vt::imag of it"});
  struct Two {
    Tensor a, b;
  };
  const auto bounded = [](const LeastSquaresOptions& o) {
    const Two guess{Tensor(1.0), Tensor(2.0)};
    (void)vt::least_squares([](Two p) { return p.a + p.b; }, guess, o);
  };
  expect_error([&] { bounded({.lower = std::pair(0.0, 0.0)}); }, ErrorKind::tree,
               {"lower is neither", "its leaf 0 is called [0] where theirs is .a"});
  expect_error([&] { bounded({.fixed = std::tuple(true, true, false)}); }, ErrorKind::tree,
               {"fixed is neither", "it has 3 leaves where they have 2"});
  expect_error([&] { solve(same_x, vt::zeros({0})); }, ErrorKind::shape,
               {"the guess has no elements"});
  expect_error([&] { solve([](Tensor x) { return x > 0.0; }, 1.0); }, ErrorKind::dtype,
               {"residuals are real floats, not bool[]"});
  expect_error([&] { solve([](Tensor) { return vt::zeros({0}); }, 1.0); }, ErrorKind::shape,
               {"there are no residuals"});
  const auto moved = [&](auto plus, std::int64_t n, const LeastSquaresOptions& o = {}) {
    (void)vt::least_squares(same_x, vt::tensor({1.0, 2.0}), plus, n, o);
  };
  const auto add = [](Tensor x, Tensor d) { return x + d; };
  expect_error([&] { moved(add, 0); }, ErrorKind::value, {"delta has 0 elements"});
  expect_error([&] { moved(add, 2, {.lower = 0.0}); }, ErrorKind::value, {"have no bounds"});
  expect_error([&] { moved(add, 2, {.fixed = vt::tensor({true})}); }, ErrorKind::shape,
               {"fixed is of delta, which has 2 elements"});
  expect_error([&] { moved([](Tensor x, Tensor) { return x[0]; }, 2); }, ErrorKind::shape,
               {"plus gives f64[] as the parameter where f64[2] is needed"});
  const auto model = [](Tensor p, Tensor t) { return decay(p, t); };
  const Tensor guess = vt::tensor({1.0, 1.0});
  expect_error([&] { (void)vt::curve_fit(model, few, measured, guess); }, ErrorKind::shape,
               {"vt::curve_fit: x and y hold the points along axis 0", "f64[4]", "f64[9]"});
  expect_error([&] { (void)vt::curve_fit(model, times, vt::tensor(1.0), guess); }, ErrorKind::shape,
               {"y holds the points along axis 0, but is f64[]"});
  expect_error(
      [&] {
        (void)vt::curve_fit([](Tensor p, Tensor t) { return p * t; }, times, measured, guess);
      },
      ErrorKind::shape, {"the model gives f64[9,2] at all points where y is f64[9]"});
  expect_error([&] { (void)vt::curve_fit(model, times, measured, guess, {.sigma = few}); },
               ErrorKind::shape,
               {"sigma is f64[4]; it must be a number or of the shape of y, f64[9]"});
  const auto other_order = [](Tensor t, Tensor p) { return p[0] * t; };
  expect_error([&] { (void)vt::curve_fit(other_order, times, measured, guess); }, ErrorKind::shape,
               {"a scalar has no axis to index: f64[]", "fits_test.cpp",
                "in the model of vt::curve_fit, which is given the parameters first, f64[2], and "
                "then one point, f64[]"});
}

}  // namespace
