// custom_jvp, custom_vjp, custom_vmap, checkpoint and stop_gradient under every derivative and
// under vmap. Most rules here lie on
// purpose: a result that shows the lie is proof that the rule was used.
#include <functional>
#include <string>
#include <vector>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;

const double e1 = std::exp(1.0);

// --- custom_jvp ----------------------------------------------------------------------------------

/// x³ whose derivative is said to be 10x.
auto lying_cube() {
  return vt::custom_jvp([](Tensor x) { return x * x * x; },
                        [](std::tuple<Tensor> x, std::tuple<Tensor> t) {
                          const Tensor a = std::get<0>(x);
                          return std::pair(a * a * a, 10.0 * a * std::get<0>(t));
                        });
}

TEST(CustomJvp, RuleIsUsedByEveryDerivative) {
  const auto f = lying_cube();
  const Tensor x = vt::tensor(3.0);
  expect_close(f(x), vt::tensor(27.0));
  const auto [y, dy] = vt::jvp(f, std::tuple(x), std::tuple(vt::tensor(2.0)));
  expect_close(y, vt::tensor(27.0));
  expect_close(dy, vt::tensor(60.0));
  expect_close(vt::grad(f)(x), vt::tensor(30.0));
  expect_close(vt::hessian(f)(x), vt::tensor(10.0));
  expect_close(vt::grad(vt::grad(f))(x), vt::tensor(10.0));
  expect_close(vt::jacfwd(vt::jacrev(f))(x), vt::tensor(10.0));
  const auto [z, push] = vt::linearize(f, x);
  expect_close(push(vt::tensor(0.5)), vt::tensor(15.0));
}

TEST(CustomJvp, UnderVmapAndJit) {
  const auto f = lying_cube();
  const Tensor xs = vt::tensor({1.0, 2.0, 3.0});
  expect_close(vt::vmap(f)(xs), vt::tensor({1.0, 8.0, 27.0}));
  expect_close(vt::vmap(vt::grad(f))(xs), vt::tensor({10.0, 20.0, 30.0}));
  expect_close(vt::grad([&](Tensor v) { return vt::sum(vt::vmap(f)(v)); })(xs),
               vt::tensor({10.0, 20.0, 30.0}));
  expect_close(vt::jit(vt::vmap(vt::grad(f)))(xs), vt::tensor({10.0, 20.0, 30.0}));
  expect_close(vt::grad(vt::jit(f))(vt::tensor(2.0)), vt::tensor(20.0));
  expect_close(vt::jacobian(f)(xs),
               vt::tensor({{10.0, 0.0, 0.0}, {0.0, 20.0, 0.0}, {0.0, 0.0, 30.0}}));
}

TEST(CustomJvp, StableSoftplus) {
  const auto f =
      vt::custom_jvp([](Tensor x) { return vt::log(1.0 + vt::exp(x)); },
                     [](std::tuple<Tensor> x, std::tuple<Tensor> t) {
                       const Tensor a = std::get<0>(x);
                       return std::pair(vt::log(1.0 + vt::exp(a)),
                                        (1.0 - 1.0 / (1.0 + vt::exp(a))) * std::get<0>(t));
                     });
  expect_close(vt::grad(f)(vt::tensor(1000.0)), vt::tensor(1.0));
  expect_close(vt::grad(f)(vt::tensor(1.0)), vt::tensor(e1 / (1 + e1)), {.ulps = 4});
}

TEST(CustomJvp, SeveralArgumentsWithoutTangents) {
  int seen = 0;
  const auto f = vt::custom_jvp([](Tensor x, Tensor y) { return x * y; },
                                [&](std::tuple<Tensor, Tensor> x, std::tuple<Tensor, Tensor> t) {
                                  ++seen;
                                  const auto [a, b] = x;
                                  const auto [ta, tb] = t;
                                  return std::pair(a * b, 100.0 * b * ta + a * tb);
                                });
  expect_close(vt::grad<0>(f)(vt::tensor(3.0), vt::tensor(5.0)), vt::tensor(500.0));
  expect_close(vt::grad<1>(f)(vt::tensor(3.0), vt::tensor(5.0)), vt::tensor(3.0));
  const int before = seen;
  f(vt::tensor(3.0), vt::tensor(5.0));
  EXPECT_EQ(seen, before) << "the rule has no business outside derivatives";
}

TEST(CustomJvp, ValuesMayBeLookedAtWhereTheyAreKnown) {
  const auto f = vt::custom_jvp([](Tensor x) { return x.item<double>() > 0 ? 2.0 * x : -x; },
                                [](std::tuple<Tensor> x, std::tuple<Tensor> t) {
                                  const Tensor a = std::get<0>(x);
                                  return std::pair(2.0 * a, 7.0 * std::get<0>(t));
                                });
  expect_close(vt::grad(f)(vt::tensor(3.0)), vt::tensor(7.0));
}

TEST(CustomJvp, WrongRules) {
  const Tensor x = vt::tensor({1.0, 2.0});
  const auto shape = vt::custom_jvp([](Tensor a) { return vt::sum(a); },
                                    [](std::tuple<Tensor> a, std::tuple<Tensor> t) {
                                      return std::pair(vt::sum(std::get<0>(a)), std::get<0>(t));
                                    });
  vt_test::expect_error([&] { vt::grad(shape)(x); }, vt::ErrorKind::shape,
                        {"vt::custom_jvp", "tangent", "f64[2]", "f64[]", "custom_rules_test.cpp"});
  const auto value = vt::custom_jvp([](Tensor a) { return vt::sum(a); },
                                    [](std::tuple<Tensor> a, std::tuple<Tensor> t) {
                                      return std::pair(std::get<0>(a), vt::sum(std::get<0>(t)));
                                    });
  vt_test::expect_error([&] { vt::grad(value)(x); }, vt::ErrorKind::shape,
                        {"vt::custom_jvp", "f64[2]", "f64[]"});
  const auto captures = [](Tensor w) {
    const auto f =
        vt::custom_jvp([w](Tensor a) { return vt::sum(a * w); },
                       [](std::tuple<Tensor> a, std::tuple<Tensor> t) {
                         return std::pair(vt::sum(std::get<0>(a)), vt::sum(std::get<0>(t)));
                       });
    return f(w + 1.0);
  };
  vt_test::expect_error([&] { vt::grad(captures)(x); }, vt::ErrorKind::transform,
                        {"vt::custom_jvp", "captures f64[2]", "pass it as an argument"});
  const auto bent = vt::custom_jvp([](Tensor a) { return a; },
                                   [](std::tuple<Tensor> a, std::tuple<Tensor> t) {
                                     return std::pair(std::get<0>(a), vt::abs(std::get<0>(t)));
                                   });
  vt_test::expect_error([&] { vt::grad(bent)(vt::tensor(1.0)); }, vt::ErrorKind::transform,
                        {"vt::abs", "not linear", "custom_rules_test.cpp"});
}

// --- custom_vjp ----------------------------------------------------------------------------------

/// x³ whose cotangent is said to be 10x · ct, with x and a constant saved.
auto lying_cube_backward() {
  return vt::custom_vjp(
      [](Tensor x) { return x * x * x; },
      [](Tensor x) { return std::pair(x * x * x, std::pair(x, Tensor(10.0))); },
      [](std::pair<Tensor, Tensor> saved, Tensor ct) { return saved.second * saved.first * ct; });
}

TEST(CustomVjp, RuleIsUsedByEveryDerivative) {
  const auto f = lying_cube_backward();
  const Tensor x = vt::tensor(3.0);
  expect_close(f(x), vt::tensor(27.0));
  expect_close(vt::grad(f)(x), vt::tensor(30.0));
  const auto [y, pull] = vt::vjp(f, x);
  expect_close(y, vt::tensor(27.0));
  expect_close(pull(vt::tensor(2.0)), vt::tensor(60.0));
  // Forward mode transposes the backward function.
  const auto [z, dz] = vt::jvp(f, std::tuple(x), std::tuple(vt::tensor(2.0)));
  expect_close(z, vt::tensor(27.0));
  expect_close(dz, vt::tensor(60.0));
  const auto [v, push] = vt::linearize(f, x);
  expect_close(push(vt::tensor(0.5)), vt::tensor(15.0));
}

TEST(CustomVjp, SecondOrderInEveryMode) {
  const auto f = lying_cube_backward();
  const Tensor x = vt::tensor(3.0);
  expect_close(vt::grad(vt::grad(f))(x), vt::tensor(10.0));
  expect_close(vt::hessian(f)(x), vt::tensor(10.0));
  expect_close(vt::jacfwd(vt::jacfwd(f))(x), vt::tensor(10.0));
  expect_close(vt::jacrev(vt::jacfwd(f))(x), vt::tensor(10.0));
  expect_close(vt::jacrev(vt::jacrev(f))(x), vt::tensor(10.0));
  expect_close(vt::grad(vt::grad(vt::grad(f)))(x), vt::tensor(0.0));
}

TEST(CustomVjp, UnderVmap) {
  const auto f = lying_cube_backward();
  const Tensor xs = vt::tensor({1.0, 2.0, 3.0});
  expect_close(vt::vmap(f)(xs), vt::tensor({1.0, 8.0, 27.0}));
  expect_close(vt::vmap(vt::grad(f))(xs), vt::tensor({10.0, 20.0, 30.0}));
  expect_close(vt::grad([&](Tensor v) { return vt::sum(vt::vmap(f)(v)); })(xs),
               vt::tensor({10.0, 20.0, 30.0}));
  expect_close(vt::vmap(vt::hessian(f))(xs), vt::tensor({10.0, 10.0, 10.0}));
  const auto [y, dy] =
      vt::jvp(vt::vmap(f), std::tuple(xs), std::tuple(vt::tensor({1.0, 0.0, 2.0})));
  expect_close(dy, vt::tensor({10.0, 0.0, 60.0}));
  expect_close(vt::jacrev(f)(xs),
               vt::tensor({{10.0, 0.0, 0.0}, {0.0, 20.0, 0.0}, {0.0, 0.0, 30.0}}));
  expect_close(vt::jacfwd(f)(xs),
               vt::tensor({{10.0, 0.0, 0.0}, {0.0, 20.0, 0.0}, {0.0, 0.0, 30.0}}));
}

TEST(CustomVjp, ABackwardThatIsNotLinearServesReverseModeOnly) {
  const auto clipped = vt::custom_vjp(
      [](Tensor x) { return x; }, [](Tensor x) { return std::pair(x, std::tuple<>()); },
      [](std::tuple<>, Tensor ct) { return vt::clip(ct, -1.0, 1.0); });
  expect_close(
      vt::grad([&](Tensor x) { return vt::sum(5.0 * clipped(x)); })(vt::tensor({1.0, 2.0})),
      vt::tensor({1.0, 1.0}));
  expect_close(
      vt::vmap(vt::grad([&](Tensor x) { return 0.5 * clipped(x); }))(vt::tensor({1.0, 2.0})),
      vt::tensor({0.5, 0.5}));
  vt_test::expect_error(
      [&] { (void)vt::jvp(clipped, std::tuple(vt::tensor(1.0)), std::tuple(vt::tensor(1.0))); },
      vt::ErrorKind::transform, {"not linear"});
}

TEST(CustomVjp, TreesAndIntegers) {
  // Rows of a table; its cotangent is tripled.
  const auto rows = vt::custom_vjp(
      [](Tensor table, Tensor index) { return vt::take(table, index, 0); },
      [](Tensor table, Tensor index) {
        return std::pair(vt::take(table, index, 0), std::pair(vt::zeros_like(table), index));
      },
      [](std::pair<Tensor, Tensor> saved, Tensor ct) {
        return std::tuple(3.0 * vt::index_add(saved.first, saved.second, ct),
                          vt::zeros_like(saved.second));
      });
  const Tensor table = vt::tensor({{1.0, 2.0}, {3.0, 4.0}, {5.0, 6.0}}),
               index = vt::tensor({2, 0, 2});
  expect_close(vt::grad([&](Tensor t) { return vt::sum(rows(t, index)); })(table),
               vt::tensor({{3.0, 3.0}, {0.0, 0.0}, {6.0, 6.0}}));
  // Two results in a tuple, two arguments.
  const auto both = vt::custom_vjp(
      [](Tensor x, Tensor y) { return std::pair(x + y, x * y); },
      [](Tensor x, Tensor y) { return std::pair(std::pair(x + y, x * y), std::pair(x, y)); },
      [](std::pair<Tensor, Tensor> saved, std::pair<Tensor, Tensor> ct) {
        return std::tuple(ct.first + 2.0 * saved.second * ct.second,
                          ct.first + 2.0 * saved.first * ct.second);
      });
  const auto f = [&](Tensor x, Tensor y) {
    const auto [sum, product] = both(x, y);
    return sum + product;
  };
  const auto [gx, gy] = vt::grad<0, 1>(f)(vt::tensor(3.0), vt::tensor(5.0));
  expect_close(gx, vt::tensor(11.0));
  expect_close(gy, vt::tensor(7.0));
  // Only one of the results is used.
  expect_close(vt::grad([&](Tensor x) { return both(x, x).second; })(vt::tensor(3.0)),
               vt::tensor(12.0));
}

TEST(CustomVjp, WrongBackward) {
  const auto f = vt::custom_vjp([](Tensor x) { return vt::sum(x); },
                                [](Tensor x) { return std::pair(vt::sum(x), x); },
                                [](Tensor, Tensor ct) { return ct; });
  vt_test::expect_error([&] { vt::grad(f)(vt::tensor({1.0, 2.0})); }, vt::ErrorKind::shape,
                        {"vt::custom_vjp", "backward", "f64[]", "f64[2]", "custom_rules_test.cpp"});
}

// --- rules that capture --------------------------------------------------------------------------

// The identity in y whose derivative is said to be x·y, x being a Tensor of the function around it.
// Both arguments of the functions below are differentiated: the rules say that nothing depends on x
// but the derivative itself.
Tensor captured_by_jvp(Tensor x, Tensor y) {
  return vt::custom_jvp([](Tensor v) { return v; },
                        [x](Tensor v, Tensor dv) { return std::pair(v, x * v * dv); })(y);
}
Tensor captured_by_backward(Tensor x, Tensor y) {
  return vt::custom_vjp([](Tensor v) { return v; }, [](Tensor v) { return std::pair(v, v); },
                        [x](Tensor v, Tensor ct) { return x * v * ct; })(y);
}
Tensor captured_by_forward(Tensor x, Tensor y) {
  return vt::custom_vjp([](Tensor v) { return v; },
                        [x](Tensor v) { return std::pair(v, std::pair(x * v, Tensor(1.0))); },
                        [](std::pair<Tensor, Tensor> saved, Tensor ct) {
                          return saved.first * saved.second * ct;
                        })(y);
}
Tensor captured_twice(Tensor x, Tensor y) {
  const Tensor root = 2.0 * x - x;  // no argument, but made of one
  return vt::custom_vjp([](Tensor v) { return v; },
                        [root](Tensor v) { return std::pair(v, root * v); },
                        [root](Tensor saved, Tensor ct) { return saved * ct * root / root; })(y);
}
/// The rule calls the function whose rule it is.
Tensor captured_again(Tensor x, Tensor y) {
  return vt::custom_jvp([](Tensor v) { return v; },
                        [x](Tensor v, Tensor dv) {
                          return std::pair(captured_again(x, v), x * captured_again(x, v) * dv);
                        })(y);
}
struct Capturing {
  const char* name;
  Tensor (*f)(Tensor x, Tensor y);
};
class RulesThatCapture : public testing::TestWithParam<Capturing> {};

TEST_P(RulesThatCapture, UnderEveryTransform) {
  const auto f = GetParam().f;
  const Tensor x = vt::tensor(3.0), y = vt::tensor(5.0), xs = vt::tensor({3.0, 2.0, -1.0}),
               ys = vt::tensor({5.0, 0.5, 4.0});
  const auto slope = vt::grad<1>(f);
  expect_close(f(x, y), y);
  expect_close(slope(x, y), vt::tensor(15.0));
  expect_close(vt::grad<0>(f)(x, y), vt::tensor(0.0));
  expect_close(vt::jit(slope)(x, y), vt::tensor(15.0));
  expect_close(vt::grad<1>(vt::jit(f))(x, y), vt::tensor(15.0));
  expect_close(vt::jacfwd<1>(f)(x, y), vt::tensor(15.0));
  expect_close(vt::jacrev<1>(f)(x, y), vt::tensor(15.0));
  const auto [value, change] =
      vt::jvp(f, std::tuple(x, y), std::tuple(vt::tensor(7.0), vt::tensor(2.0)));
  expect_close(value, y);
  expect_close(change, vt::tensor(30.0));
  // The derivative depends on x after all.
  expect_close(vt::grad<0>(slope)(x, y), y);
  expect_close(vt::grad<1>(slope)(x, y), GetParam().f == captured_again ? x * x * y : x);
  // Lanes of one or both.
  expect_close(vt::vmap(slope)(xs, ys), xs * ys);
  expect_close(vt::jit(vt::vmap(slope))(xs, ys), xs * ys);
  expect_close(vt::vmap(slope, {.in_axes = {vt::unmapped, 0}})(x, ys), x * ys);
  expect_close(vt::vmap(slope, {.in_axes = {0, vt::unmapped}})(xs, y), xs * y);
  expect_close(vt::vmap(vt::vmap(slope, {.in_axes = {vt::unmapped, 0}}),
                        {.in_axes = {0, vt::unmapped}})(xs, ys),
               vt::outer(xs, ys));
  const auto total = [f](Tensor a, Tensor b) { return vt::sum(vt::vmap(f)(a, b)); };
  expect_close(vt::grad<1>(total)(xs, ys), xs * ys);
  expect_close(vt::jit(vt::grad<1>(total))(xs, ys), xs * ys);
  expect_close(vt::jacfwd<1>(vt::vmap(f))(xs, ys), vt::diag(xs * ys));
}

TEST_P(RulesThatCapture, InsideControlFlow) {
  const auto f = GetParam().f;
  const Tensor xs = vt::tensor({3.0, 2.0, -1.0}), y = vt::tensor(5.0);
  const auto chosen = [f](Tensor x, Tensor v) {
    return vt::cond(v > 1.0, [&] { return f(x, v); }, [&] { return f(2.0 * x, v); });
  };
  expect_close(vt::grad<1>(chosen)(vt::tensor(3.0), y), vt::tensor(15.0));
  expect_close(vt::jit(vt::grad<1>(chosen))(vt::tensor(3.0), vt::tensor(0.5)), vt::tensor(3.0));
  expect_close(vt::vmap(vt::grad<1>(chosen))(xs, vt::tensor({5.0, 0.5, 4.0})),
               vt::tensor({15.0, 2.0, -4.0}));
  // Of the carry, of a row, and of the function around the loop: the product of the slopes x·y, y
  // staying what it is.
  const auto rows = [f](Tensor x, Tensor v) {
    return vt::scan([&](Tensor carry, Tensor row) { return std::pair(f(row, carry), carry); }, v, x)
        .first;
  };
  expect_close(vt::grad<1>(rows)(xs, y), vt::tensor(-6.0 * 125.0));
  expect_close(vt::jit(vt::grad<1>(rows))(xs, y), vt::tensor(-6.0 * 125.0));
}

TEST_P(RulesThatCapture, InsideLoopsAndCalls) {
  const auto f = GetParam().f;
  const Tensor x = vt::tensor(3.0), y = vt::tensor(5.0);
  const auto iterations = [f](Tensor a, Tensor v) {
    return vt::fori_loop(0, 2, [&](Tensor, Tensor carry) { return f(a, carry); }, v);
  };
  expect_close(vt::grad<1>(iterations)(x, y), vt::tensor(225.0));
  expect_close(vt::jacfwd<1>(iterations)(x, y), vt::tensor(225.0));
  expect_close(vt::vmap(vt::grad<1>(iterations))(vt::tensor({3.0, 2.0}), vt::tensor({5.0, 1.0})),
               vt::tensor({225.0, 4.0}));
  const auto again = [f](Tensor a, Tensor v) {
    return vt::checkpoint([&](Tensor w) { return f(a, w); })(v);
  };
  expect_close(vt::grad<1>(again)(x, y), vt::tensor(15.0));
  const auto named = vt::function("named", [f](Tensor a, Tensor v) { return f(a * 2.0, v); });
  expect_close(vt::grad<1>([&](Tensor a, Tensor v) { return named(a, v); })(x, y),
               vt::tensor(30.0));
}

INSTANTIATE_TEST_SUITE_P(CustomRules, RulesThatCapture,
                         testing::Values(Capturing{"Jvp", captured_by_jvp},
                                         Capturing{"Backward", captured_by_backward},
                                         Capturing{"Forward", captured_by_forward},
                                         Capturing{"Both", captured_twice},
                                         Capturing{"Itself", captured_again}),
                         [](const auto& info) { return std::string(info.param.name); });

TEST(RulesThatCapture, MayLookAtWhatIsKnown) {
  const auto f = [](Tensor x, Tensor y) {
    return vt::custom_jvp([](Tensor v) { return v; },
                          [x](Tensor v, Tensor dv) {
                            return std::pair(v, (v.item<double>() > 1.0 ? x : -x) * dv);
                          })(y);
  };
  expect_close(vt::grad<1>(f)(vt::tensor(3.0), vt::tensor(5.0)), vt::tensor(3.0));
  expect_close(vt::grad<1>(f)(vt::tensor(3.0), vt::tensor(0.0)), vt::tensor(-3.0));
}

// --- rules that differentiate loops --------------------------------------------------------------

using Function = std::function<Tensor(Tensor)>;

/// Functions of a loop that ends by its value, and of one with a known number of iterations.
std::vector<std::pair<std::string, Function>> functions_of_loops() {
  const Function until = [](Tensor x) {
    return vt::while_loop([](Tensor c) { return vt::sum(c) < 10.0; },
                          [=](Tensor c) { return c * x; }, x);
  };
  const Function three = [](Tensor x) {
    return vt::fori_loop(0, 3, [=](Tensor, Tensor c) { return c * x; }, x);
  };
  std::vector<std::pair<std::string, Function>> all;
  for (const auto& named : {std::pair("while", until), std::pair("fori", three)}) {
    const std::string name = named.first;
    const Function w = named.second;
    all.push_back({name, w});
    all.push_back({"sin of " + name, [=](Tensor x) { return vt::sin(w(x)); }});
    all.push_back({"square of " + name, [=](Tensor x) {
                     const Tensor y = w(x);
                     return y * y;
                   }});
    all.push_back({"choice of " + name, [=](Tensor x) {
                     const Tensor y = w(x);
                     return vt::where(y > 0.0, y, x);
                   }});
  }
  return all;
}

/// `f` with rules that are its derivative, each got in another way.
std::vector<std::pair<std::string, Function>> with_rules(const Function& f) {
  const auto with_jvp = [&](auto rule) { return Function(vt::custom_jvp(f, rule)); };
  const auto with_vjp = [&](auto backward) {
    return Function(vt::custom_vjp(f, [f](Tensor x) { return std::pair(f(x), x); }, backward));
  };
  const auto along = [](const auto& g, Tensor x, Tensor t) {
    return vt::jvp(g, std::tuple(x), std::tuple(t));
  };
  return {{"linearize", with_jvp([f](Tensor x, Tensor t) {
             const auto [y, push] = vt::linearize(f, x);
             return std::pair(y, push(t));
           })},
          {"jvp of linearize", with_jvp([=](Tensor x, Tensor t) {
             return along([f](Tensor y) { return vt::linearize(f, y).first; }, x, t);
           })},
          {"jvp of vjp", with_jvp([=](Tensor x, Tensor t) {
             return along([f](Tensor y) { return vt::vjp(f, y).first; }, x, t);
           })},
          {"vjp", with_vjp([f](Tensor x, Tensor ct) { return vt::vjp(f, x).second(ct); })},
          {"grad", with_vjp([f](Tensor x, Tensor ct) {
             return vt::grad([=](Tensor y) { return vt::sum(f(y) * ct); })(x);
           })},
          {"grad of a loop that carries the cotangent", with_vjp([f](Tensor x, Tensor ct) {
             return vt::grad([=](Tensor y) {
               const auto once =
                   vt::while_loop([](Tensor i, Tensor) { return i < 1; },
                                  [=](Tensor i, Tensor c) { return std::tuple(i + 1, c * f(y)); },
                                  std::tuple(vt::tensor(0), ct));
               return vt::sum(std::get<1>(once));
             })(x);
           })}};
}

TEST(CustomRules, ThatDifferentiateLoops) {
  const Tensor x = vt::tensor({1.3, 1.7}), t = vt::tensor({0.3, -0.7});
  const vt_test::Tolerance close{.relative = 1e-9, .absolute = 1e-9};
  const auto tangent = [&](const Function& f) {
    return vt::jvp(f, std::tuple(x), std::tuple(t)).second;
  };
  const auto total = [](const Function& f) { return [=](Tensor y) { return vt::sum(f(y)); }; };
  const auto second = [&](const Function& f) {
    return vt::jvp(vt::grad(total(f)), std::tuple(x), std::tuple(t)).second;
  };
  for (const auto& [name, f] : functions_of_loops()) {
    const Tensor slopes = vt::grad(total(f))(x), along = tangent(f), curved = second(f);
    for (const auto& [rule, g] : with_rules(f)) {
      const std::string what = name + ", " + rule;
      expect_close(g(x), f(x), close, what);
      expect_close(tangent(g), along, close, what + ": jvp");
      expect_close(vt::grad(total(g))(x), slopes, close, what + ": grad");
      expect_close(vt::jit(vt::vmap(vt::grad(total(g))))(vt::stack({x, x}))[1], slopes, close,
                   what + ": jit of vmap of grad");
      expect_close(second(g), curved, close, what + ": second derivative");
    }
  }
}

// --- custom_vmap ---------------------------------------------------------------------------------

TEST(CustomVmap, RuleServesVmapAndTheBodyDerivatives) {
  const auto f = vt::custom_vmap([](Tensor x) { return x * x; },
                                 [](std::int64_t, std::array<bool, 1> mapped, Tensor x) {
                                   return std::pair(x * x + 100.0, mapped[0]);
                                 });
  expect_close(f(vt::tensor(3.0)), vt::tensor(9.0));
  expect_close(vt::vmap(f)(vt::tensor({1.0, 2.0})), vt::tensor({101.0, 104.0}));
  expect_close(vt::grad(f)(vt::tensor(3.0)), vt::tensor(6.0));
  expect_close(vt::hessian(f)(vt::tensor(3.0)), vt::tensor(2.0));
  expect_close(vt::vmap(vt::grad(f))(vt::tensor({1.0, 2.0})), vt::tensor({2.0, 4.0}));
}

// --- checkpoint ----------------------------------------------------------------------------------

Tensor deep(Tensor x) { return vt::sin(vt::exp(vt::cos(vt::tanh(x)))); }

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Checkpoint, DerivativesAreThoseOfTheFunction) {
  const Tensor x = vt_test::random_tensor(vt::f64, {4}, 5);
  const auto plain = [](Tensor v) { return vt::sum(deep(v) * v); };
  const auto saved = [](Tensor v) { return vt::sum(vt::checkpoint(deep)(v) * v); };
  const vt_test::Tolerance close{.relative = 1e-13, .absolute = 1e-14};
  expect_close(saved(x), plain(x), close);
  expect_close(vt::grad(saved)(x), vt::grad(plain)(x), close);
  expect_close(vt::jit(vt::grad(saved))(x), vt::grad(plain)(x), close);
  expect_close(vt::hessian(saved)(x), vt::hessian(plain)(x), close);
  expect_close(vt::jacrev(vt::jacrev(saved))(x), vt::hessian(plain)(x), close);
  expect_close(vt::jacfwd(vt::jacfwd(saved))(x), vt::hessian(plain)(x), close);
  const Tensor xs = vt_test::random_tensor(vt::f64, {3, 4}, 6);
  expect_close(vt::vmap(vt::grad(saved))(xs), vt::vmap(vt::grad(plain))(xs), close);
  expect_close(vt::vmap(vt::hessian(saved))(xs), vt::vmap(vt::hessian(plain))(xs), close);
  const auto [y, dy] = vt::jvp(saved, std::tuple(x), std::tuple(x));
  expect_close(dy, vt::jvp(plain, std::tuple(x), std::tuple(x)).second, close);
}

TEST(Checkpoint, CapturedTensorsAreDifferentiatedToo) {
  const auto f = [](Tensor w) {
    const auto inner = vt::checkpoint([w](Tensor x) { return vt::sin(x * w); });
    return vt::sum(inner(w + 1.0));
  };
  const auto g = [](Tensor w) { return vt::sum(vt::sin((w + 1.0) * w)); };
  const Tensor w = vt::tensor({0.3, -0.7});
  expect_close(vt::grad(f)(w), vt::grad(g)(w), {.relative = 1e-14});
  expect_close(vt::hessian(f)(w), vt::hessian(g)(w), {.relative = 1e-13, .absolute = 1e-15});
}

TEST(Checkpoint, NestedInChains) {
  const auto step = vt::checkpoint([](Tensor x) { return vt::checkpoint(deep)(x) + x; });
  const auto saved = [&](Tensor x) { return vt::sum(step(step(step(x)))); };
  const auto plain = [](Tensor x) {
    for (int i = 0; i < 3; ++i) x = deep(x) + x;
    return vt::sum(x);
  };
  const Tensor x = vt::tensor({0.3, -0.7});
  expect_close(vt::grad(saved)(x), vt::grad(plain)(x), {.relative = 1e-13});
}

TEST(Checkpoint, IsComputedAgainInsteadOfKept) {
  const auto text = [](auto f) {
    return vt::make_graph(vt::value_and_grad(f))(vt::tensor({0.5, 1.0})).str();
  };
  const std::string plain = text([](Tensor v) { return vt::sum(deep(v)); });
  const std::string saved = text([](Tensor v) { return vt::sum(vt::checkpoint(deep)(v)); });
  EXPECT_EQ(count(plain, "checkpoint"), 0u) << plain;
  EXPECT_EQ(count(plain, " exp "), 1u) << plain;
  // One equation for the value, one for the cotangent; each computes exp for itself and hands out
  // one result.
  EXPECT_EQ(count(saved, "= checkpoint"), 2u) << saved;
  EXPECT_EQ(count(saved, " exp "), 2u) << saved;
}

// --- stop_gradient -------------------------------------------------------------------------------

TEST(StopGradient, CutsEveryMode) {
  const auto f = [](Tensor x) { return x * vt::stop_gradient(x); };
  expect_close(f(vt::tensor(3.0)), vt::tensor(9.0));
  expect_close(vt::grad(f)(vt::tensor(3.0)), vt::tensor(3.0));
  expect_close(vt::grad(vt::grad(f))(vt::tensor(3.0)), vt::tensor(0.0));
  expect_close(vt::jvp(f, std::tuple(vt::tensor(3.0)), std::tuple(vt::tensor(1.0))).second,
               vt::tensor(3.0));
  expect_close(vt::vmap(vt::grad(f))(vt::tensor({1.0, 2.0})), vt::tensor({1.0, 2.0}));
}

}  // namespace
