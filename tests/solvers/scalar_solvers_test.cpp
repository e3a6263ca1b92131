// bisect, brentq, golden and brent: against SciPy, differences and loops over lanes; why they end,
// values that are not finite, and messages.
#include "support/property.hpp"

namespace {

using vt::BracketOptions;
using vt::ErrorKind;
using vt::StopReason;
using vt::Tensor;
using vt_test::expect_close;
using vt_test::expect_error;

using Function = std::function<Tensor(Tensor)>;
using Solved = vt::Solution<Tensor>;

void expect_reason(const Solved& s, StopReason wanted) {
  EXPECT_STREQ(vt::name_of(static_cast<StopReason>(s.reason.item<int>())), vt::name_of(wanted));
  EXPECT_EQ(s.converged.item<bool>(), wanted < StopReason::max_iterations);
}
double number(const Tensor& t) { return t.item<double>(); }
std::int64_t count(const Tensor& t) { return t.item<std::int64_t>(); }

// --- roots ---------------------------------------------------------------------------------------

const Function cubic = [](Tensor x) { return x * x * x - 2.0 * x - 5.0; };

// SciPy 1.17: roots and calls of the function.
TEST(Roots, AreSciPys) {
  const auto check = [](const Function& f, double a, double b, double halved,
                        std::int64_t calls_of_bisect, double found, std::int64_t calls_of_brentq) {
    const Solved bisect = vt::bisect(f, a, b), brentq = vt::brentq(f, a, b);
    EXPECT_NEAR(number(bisect.x), halved, 4e-12);
    EXPECT_EQ(count(bisect.evaluations), calls_of_bisect);
    EXPECT_NEAR(number(brentq.x), found, 1e-14);
    EXPECT_EQ(count(brentq.evaluations), calls_of_brentq);
    for (const Solved& s : {bisect, brentq}) {
      EXPECT_EQ(count(s.iterations), count(s.evaluations) - 2);
      EXPECT_EQ(number(s.value), number(vt::abs(f(s.x))));
      expect_reason(s, StopReason::tolerance);
    }
  };
  check([](Tensor x) { return vt::cos(x) - x; }, 0, 2, 0.7390851332147577, 42, 0.7390851332151607,
        8);
  check(cubic, 2, 3, 2.0945514815412025, 41, 2.094551481542327, 8);
  check([](Tensor x) { return vt::exp(x) - 5.0; }, -3, 4, 1.6094379124344869, 44,
        1.6094379124341005, 13);
  check([](Tensor x) { return vt::log(x); }, 1e-3, 3, 0.9999999999997642, 43, 1.0000000000000002,
        11);
  check([](Tensor x) { return x / (1.0 + x * x) - 0.3; }, -1, 1, 0.33333333333393966, 42,
        0.33333333333358767, 11);
}

TEST(Roots, OfManyKinds) {
  for (const bool brent : {false, true}) {
    SCOPED_TRACE(brent);
    const auto solve = [&](const Function& f, const Tensor& a, const Tensor& b,
                           const BracketOptions& o = {}) {
      return brent ? vt::brentq(f, a, b, o) : vt::bisect(f, a, b, o);
    };
    // The ends in either order, roots at them, numbers of f32.
    EXPECT_NEAR(number(solve(cubic, 3.0, 2.0).x), 2.0945514815423265, 1e-11);
    EXPECT_EQ(count(solve([](Tensor x) { return x - 2.0; }, 2.0, 3.0).evaluations), 1);
    EXPECT_EQ(number(solve([](Tensor x) { return x - 3.0; }, 2.0, 3.0).x), 3);
    const Solved coarse = solve([](Tensor x) { return x * x - 2.0f; }, 0.0f, 2.0f);
    EXPECT_EQ(coarse.x.dtype(), vt::f32);
    EXPECT_EQ(coarse.value.dtype(), vt::f32);
    EXPECT_NEAR(coarse.x.item<float>(), std::sqrt(2.0f), 2e-6);
    expect_reason(coarse, StopReason::tolerance);
    // A pole at an end, a triple root, a step, a wide interval.
    EXPECT_NEAR(number(solve([](Tensor x) { return vt::log(x); }, 0.0, 3.0).x), 1, 1e-11);
    EXPECT_NEAR(
        number(solve([](Tensor x) { return (x - 1.0) * (x - 1.0) * (x - 1.0); }, -0.5, 4.0).x), 1,
        1e-4);
    EXPECT_NEAR(number(solve([](Tensor x) { return vt::where(x < 0.3, -1.0, 2.0); }, -1.0, 1.0).x),
                0.3, 1e-11);
    EXPECT_NEAR(number(solve([](Tensor x) { return x - 7.0; }, -1e300, 1e300).x), 7, 1e-11);
    // A NaN on the way is gone around.
    const Function hole = [](Tensor x) {
      return vt::where((x > 0.4) & (x < 0.6), std::nan(""), vt::exp(x) - std::exp(0.3));
    };
    EXPECT_NEAR(number(solve(hole, 0.0, 1.0).x), 0.3, 1e-11);
    // Nothing but the ends is a number.
    const Function nothing = [](Tensor x) {
      return vt::where((x == 0.0) | (x == 1.0), x - 0.5, std::nan(""));
    };
    expect_reason(solve(nothing, 0.0, 1.0), StopReason::small_step);

    const Solved same_sign = solve([](Tensor x) { return x * x + 1.0; }, 3.0, -2.0);
    expect_reason(same_sign, StopReason::no_bracket);
    EXPECT_EQ(number(same_sign.x), -2);
    EXPECT_EQ(number(same_sign.value), 5);
    expect_reason(solve([](Tensor x) { return vt::sqrt(x); }, -1.0, 1.0), StopReason::not_finite);
    expect_reason(solve([](Tensor x) { return vt::sqrt(x) - 0.5; }, 1.0, -1.0),
                  StopReason::not_finite);
    const Solved early = solve(cubic, 2.0, 3.0, {.max_iterations = 3});
    expect_reason(early, StopReason::max_iterations);
    EXPECT_EQ(count(early.iterations), 3);
    const Solved rough = solve(cubic, 2.0, 3.0, {.xtol = 0.1});
    EXPECT_LT(count(rough.iterations), 8);
    EXPECT_NEAR(number(rough.x), 2.0945514815423265, 0.1);
    // Without tolerances to the last digit.
    EXPECT_NEAR(number(solve(cubic, 2.0, 3.0, {.xtol = 0.0, .rtol = 0.0}).x), 2.0945514815423265,
                1e-15);
  }
}

// --- minima --------------------------------------------------------------------------------------

// SciPy 1.17, `minimize_scalar`: brent from a bracket calls the function about as often.
TEST(Minima, AreSciPys) {
  const auto check = [](const Function& f, double a, double middle, double b, double x,
                        std::int64_t calls) {
    const Solved brent = vt::brent(f, a, middle, b);
    EXPECT_NEAR(number(brent.x), x, 3e-8);
    EXPECT_LE(count(brent.evaluations), calls + 2);
    for (const Solved& s :
         {brent, vt::brent(f, a, b), vt::golden(f, a, b), vt::golden(f, a, middle, b)}) {
      EXPECT_NEAR(number(s.x), x, 3e-8);
      EXPECT_NEAR(number(s.value), number(f(Tensor(x))), 1e-14);
      expect_reason(s, StopReason::tolerance);
    }
    EXPECT_EQ(count(brent.iterations), count(brent.evaluations) - 3);
    EXPECT_GT(count(vt::golden(f, a, b).evaluations), count(vt::brent(f, a, b).evaluations));
  };
  check([](Tensor x) { return vt::square(x - 2.0) * x * vt::square(x + 2.0); }, 1, 1.5, 3, 2, 13);
  check([](Tensor x) { return vt::cosh(x - 0.5); }, -1, 0.3, 2, 0.5, 17);
  check([](Tensor x) { return x - vt::log(x); }, 0.1, 2, 5, 1, 14);
  check([](Tensor x) { return -vt::exp(-vt::square(x - 0.7)); }, -1, 0.2, 2.5, 0.7, 12);
}

TEST(Minima, OfManyKinds) {
  for (const bool brent : {false, true}) {
    SCOPED_TRACE(brent);
    const auto solve = [&](const Function& f, const Tensor& a, const Tensor& b,
                           const BracketOptions& o = {}) {
      return brent ? vt::brent(f, a, b, o) : vt::golden(f, a, b, o);
    };
    const auto from = [&](const Function& f, const Tensor& a, const Tensor& middle,
                          const Tensor& b) {
      return brent ? vt::brent(f, a, middle, b) : vt::golden(f, a, middle, b);
    };
    const Function kink = [](Tensor x) { return vt::abs(x - 0.3); };
    EXPECT_NEAR(number(solve(kink, 2.0, -1.0).x), 0.3, 3e-8);
    EXPECT_NEAR(number(solve([](Tensor x) { return x; }, 1.0, 3.0).x), 1, 1e-7);
    EXPECT_NEAR(number(solve([](Tensor x) { return -x; }, 1.0, 3.0).x), 3, 2e-7);
    const Solved coarse = solve([](Tensor x) { return vt::square(x - 1.2f); }, 0.0f, 3.0f);
    EXPECT_EQ(coarse.x.dtype(), vt::f32);
    EXPECT_NEAR(coarse.x.item<float>(), 1.2f, 1e-3f);
    // A wall of NaN, and one that is infinite.
    EXPECT_NEAR(number(solve([](Tensor x) { return x - vt::log(x - 0.5); }, -1.0, 4.0).x), 1.5,
                3e-8);
    expect_reason(solve([](Tensor x) { return vt::log(x); }, -3.0, 0.0), StopReason::not_finite);
    expect_reason(solve(kink, 0.0, 1.0, {.max_iterations = 4}), StopReason::max_iterations);
    const Solved none = from(kink, 0.5, 0.7, 2.0);
    expect_reason(none, StopReason::no_bracket);
    EXPECT_EQ(number(none.x), 0.5);
    expect_reason(from(kink, -1.0, -0.7, 0.2), StopReason::no_bracket);
    EXPECT_NEAR(number(from(kink, 1.0, 0.2, -1.0).x), 0.3, 3e-8);
  }
}

// --- lanes and derivatives -----------------------------------------------------------------------

const Tensor lanes = vt::tensor({4.0, -1.0, 2.5, 81.0, 0.0, 100.0, 3.0});
const auto all_of = [](const Solved& s) {
  return std::tuple(s.x, s.value, s.iterations, s.evaluations, s.converged, s.reason);
};
template <class F>
void expect_lanes(const F& solve) {
  const auto one = [&](Tensor y) { return all_of(solve(y)); };
  const auto all = vt::jit(vt::vmap(one))(lanes);
  for (std::int64_t i = 0; i < lanes.dim(0); ++i) {
    const auto alone = one(lanes[i]);
    expect_close(std::get<0>(all)[i], std::get<0>(alone), {.relative = 1e-12, .absolute = 1e-12});
    expect_close(std::get<3>(all)[i], std::get<3>(alone));
    expect_close(std::get<5>(all)[i], std::get<5>(alone));
    const auto few = vt::jit(vt::vmap(one))(lanes[vt::slice(0, i + 1)]);
    expect_close(std::get<0>(few)[i], std::get<0>(all)[i]);
    expect_close(std::get<2>(few)[i], std::get<2>(all)[i]);
  }
}
Solved square_root(const Tensor& y) {
  return vt::brentq([=](Tensor x) { return x * x - y; }, 0.0, 9.5);
}
Solved valley(const Tensor& y) {
  return vt::brent([=](Tensor x) { return vt::cosh(x - y) + 0.1 * x * y; }, -10.0, 90.0);
}
TEST(ScalarSolvers, LanesAreTheLoop) {
  expect_lanes(square_root);
  expect_lanes([](Tensor y) { return vt::bisect([=](Tensor x) { return x * x - y; }, 0.0, 9.5); });
  expect_lanes([](Tensor y) {
    return vt::brent([=](Tensor x) { return vt::square(x - y); }, -10.0, 9.0 + y);
  });
  expect_lanes([](Tensor y) {
    return vt::golden([=](Tensor x) { return vt::square(x - y); }, -10.0, 9.0, 120.0);
  });
}

void expect_derivatives(const Function& f, const Tensor& x, double tolerance) {
  const vt_test::Tolerance near{.relative = tolerance, .absolute = tolerance};
  const Tensor slope = vt_test::numeric_jacobian(f, x);
  expect_close(vt::jacfwd(f)(x), slope, near, "forward");
  expect_close(vt::jit(vt::grad(f))(x), slope, near, "reverse, compiled");
  const auto sum = [&](Tensor many) { return vt::sum(vt::vmap(f)(many)); };
  expect_close(vt::grad(sum)(vt::stack({x, x}))[1], slope, near, "reverse of lanes");
  expect_close(vt::vmap(vt::grad(f))(vt::stack({x, x}))[0], slope, near, "lanes of reverse");
  const Tensor curve = vt_test::numeric_jacobian(Function(vt::grad(f)), x);
  expect_close(vt::grad(vt::grad(f))(x), curve, near, "reverse of reverse");
  expect_close(vt::jacfwd(vt::jacfwd(f))(x), curve, near, "forward of forward");
}
TEST(ScalarSolvers, DerivativesComeFromTheCondition) {
  const Tensor y = vt::tensor(2.0);
  expect_derivatives([](Tensor y) { return square_root(y).x; }, y, 1e-6);
  EXPECT_NEAR(number(vt::grad([](Tensor y) { return square_root(y).x; })(y)), 0.5 / std::sqrt(2.0),
              1e-11);
  EXPECT_EQ(number(vt::grad([](Tensor y) { return square_root(y).value; })(y)), 0);
  // cosh′(x − y) = −0.1 y
  const auto at = [](Tensor y) { return y - vt::asinh(0.1 * y); };
  expect_close(vt::grad([](Tensor y) { return valley(y).x; })(y), vt::grad(at)(y),
               {.relative = 1e-7});
  expect_close(vt::grad(vt::grad([](Tensor y) { return valley(y).x; }))(y),
               vt::grad(vt::grad(at))(y), {.relative = 1e-6});
  expect_derivatives([](Tensor y) { return valley(y).value; }, y, 1e-6);
  // By the ends x is constant, but where it is one of them.
  const auto by_end = [](Tensor a) { return vt::brentq(cubic, a, 3.0).x; };
  EXPECT_EQ(number(vt::grad(by_end)(y)), 0);
  const auto end = [](Tensor a) { return vt::golden([](Tensor x) { return x * x; }, a, 5.0).x; };
  EXPECT_EQ(number(vt::grad(end)(y)), 1);
  EXPECT_EQ(number(vt::grad(end)(vt::tensor(-2.0))), 0);
}

// --- messages ------------------------------------------------------------------------------------

TEST(ScalarSolvers, WrongUses) {
  const auto same = [](Tensor x) { return x; };
  expect_error([&] { (void)vt::brentq(same, 0, 1); }, ErrorKind::dtype,
               {"vt::brentq: a is i32[]", "write 1.0, not 1", "scalar_solvers_test.cpp"});
  expect_error([&] { (void)vt::brentq(same, vt::ones({}, vt::f16), 1.0); }, ErrorKind::dtype,
               {"vt::brentq: a is f16[]", "convert it with astype(vt::f32)"});
  expect_error([&] { (void)vt::bisect(same, 0.0, vt::zeros({2})); }, ErrorKind::shape,
               {"vt::bisect: b is f32[2]; it must be a scalar", "vt::vmap"});
  expect_error([&] { (void)vt::brent(same, 0.0, 1.0, Tensor()); }, ErrorKind::value,
               {"vt::brent: b is an empty Tensor"});
  expect_error([&] { (void)vt::golden(same, 0.0, 1.0, {.xtol = -1.0}); }, ErrorKind::value,
               {"vt::golden: xtol is -1"});
  expect_error([&] { (void)vt::brent(same, 0.0, 1.0, {.rtol = -1.0}); }, ErrorKind::value,
               {"rtol is -1"});
  expect_error([&] { (void)vt::brent(same, 0.0, 1.0, {.max_iterations = 0}); }, ErrorKind::value,
               {"max_iterations is 0"});
  expect_error([&] { (void)vt::bisect([](Tensor x) { return vt::stack({x, x}); }, 0.0, 1.0); },
               ErrorKind::shape, {"the function gives f64[2] where a scalar is needed"});
  expect_error([&] { (void)vt::bisect([](Tensor x) { return x > 0.0; }, 0.0, 1.0); },
               ErrorKind::dtype, {"the function gives bool[] where a real float is needed"});
}

}  // namespace
