// Higher orders of reverse mode through loops of unknown length: memory, which each order may
// double and no more; closed forms; derivatives of the loops that reverse mode makes, by their
// operands and by their cotangents, inside of other functions, in lanes and transposed; and
// effects, which happen once.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::Tolerance;
using Function = std::function<Tensor(Tensor)>;

constexpr Tolerance near{.relative = 1e-6, .absolute = 1e-7},
    same{.relative = 1e-10, .absolute = 1e-12};

Function slope(const Function& f) { return vt::grad(f); }
Function pushed(const Function& f) {
  return [=](Tensor x) { return vt::jvp(f, std::tuple(x), std::tuple(vt::ones_like(x))).second; };
}

/// vⁿ ← v·x, as often as n says.
Tensor power(Tensor x, Tensor n) {
  return vt::fori_loop(0, n, [&](Tensor, Tensor v) { return v * x; }, 1.0);
}
Function power_of(int n) {
  return [=](Tensor x) { return power(x, vt::tensor(n)); };
}
/// A few iterations with a nonlinear step.
Tensor wave(Tensor v, Tensor x) {
  return vt::while_loop(
             [](Tensor i, Tensor) { return i < 3; },
             [&](Tensor i, Tensor u) { return std::pair(i + 1, vt::sin(u) * x + 0.1 * u); },
             std::pair(0, v))
      .second;
}

std::size_t peak(const Function& f) { return vt::jit(f).memory(vt::tensor(0.7)).peak(); }

/// What lies in the frame of a kernel is not counted: some orders may fit there, and the next one
/// not.
void expect_modest_growth(const char* what, const Function& f, std::size_t factor) {
  constexpr std::size_t in_frame = 16'000;
  Function d = vt::grad(f);
  std::size_t most = std::max(peak(d), in_frame);
  for (int order = 2; order <= 4; ++order) {
    d = vt::grad(d);
    most *= factor;
    ASSERT_LE(peak(d), most) << what << ", order " << order;
  }
}

TEST(ControlOrders, MemoryGrowsByAFactorWithEachOrder) {
  expect_modest_growth("while", [](Tensor x) { return wave(x, x); }, 3);
  expect_modest_growth(
      "while in while",
      [](Tensor x) {
        return vt::fori_loop(0, vt::tensor(5), [&](Tensor, Tensor v) { return wave(v, x); }, x);
      },
      3);
  expect_modest_growth(
      "while in scan",
      [](Tensor x) {
        return vt::fori_loop(0, 100, [&](Tensor, Tensor v) { return wave(v, x); }, x);
      },
      4);
  expect_modest_growth(
      "lanes",
      [](Tensor x) {
        const auto lane = [&](Tensor n) {
          return vt::fori_loop(0, n, [&](Tensor, Tensor v) { return vt::sin(v) * x; }, x);
        };
        return vt::sum(vt::vmap(lane)(vt::arange(5)));
      },
      3);
}

TEST(ControlOrders, ForwardModeBetweenReverseModesTakesNoMoreThanTwice) {
  const Function f = [](Tensor x) { return wave(x, x); };
  const std::size_t first = peak(slope(f));
  EXPECT_LE(peak(pushed(slope(f))), 3 * first);
  EXPECT_LE(peak(slope(pushed(slope(f)))), 9 * first);
  EXPECT_LE(peak(slope(slope(pushed(f)))), 9 * first);
}

TEST(ControlOrders, NoStatesAreKeptForEachIterationOfAScan) {
  const auto f = [](int n) {
    return Function([=](Tensor x) {
      return vt::fori_loop(0, n, [&](Tensor, Tensor v) { return wave(v, x); }, x);
    });
  };
  for (int order = 1; order <= 3; ++order) {
    Function few = f(40), many = f(20'000);
    for (int k = 0; k < order; ++k) {
      few = slope(few);
      many = slope(many);
    }
    EXPECT_LE(peak(few), 4'000'000u) << order;
    EXPECT_LE(peak(many), 4'000'000u) << order;
  }
  const Function scanned = [](Tensor x) {
    const auto step = [&](Tensor, Tensor v) {
      return vt::fori_loop(0, 3, [&](Tensor, Tensor u) { return vt::sin(u) * x + 0.1 * u; }, v);
    };
    return vt::fori_loop(0, 2000, step, x);
  };
  const Tensor x = vt::tensor(1.4);
  for (int n : {40, 2000}) {
    const Function g = f(n);
    expect_close(vt::jit(slope(slope(g)))(x), vt::jit(pushed(pushed(g)))(x),
                 {.relative = 1e-9, .absolute = 1e-12}, std::to_string(n));
  }
  expect_close(vt::jit(slope(f(2000)))(x), vt::jit(slope(scanned))(x),
               {.relative = 1e-9, .absolute = 1e-12});
}

TEST(ControlOrders, SixthDerivativesOfAPower) {
  Function f = power_of(6);
  const Tensor x = vt::tensor(1.5), xs = vt::tensor({1.5, 0.5, 0.0});
  double factor = 1;
  for (int order = 1; order <= 6; ++order) {
    factor *= 7 - order;
    const int left = 6 - order;
    f = order % 3 == 2 ? pushed(f) : slope(f);
    expect_close(f(x), vt::tensor(factor * std::pow(1.5, left)), same,
                 "order " + std::to_string(order));
    expect_close(vt::vmap(f)(xs),
                 factor * vt::tensor({std::pow(1.5, left), std::pow(0.5, left), left ? 0.0 : 1.0}),
                 same, "lanes");
  }
  expect_close(vt::jit(f)(x), vt::tensor(720.0), same, "compiled");
}

TEST(ControlOrders, LanesWithIterationsOfTheirOwn) {
  const Tensor n = vt::tensor({6, 3, 5}), x = vt::tensor({1.5, 2.0, 1.0});
  const auto lane = [](Tensor count, Tensor v) {
    return slope(slope([=](Tensor u) { return power(u, count); }))(v);
  };
  const Function scaled = [&](Tensor s) { return vt::sum(vt::vmap(lane)(n, x * s)); };
  const double x4 = std::pow(1.5, 4);
  expect_close(scaled(vt::tensor(1.0)), vt::tensor(30 * x4 + 12 + 20));
  expect_close(slope(scaled)(vt::tensor(1.0)), vt::tensor(120 * x4 + 12 + 60), same);
  expect_close(pushed(scaled)(vt::tensor(1.0)), vt::tensor(120 * x4 + 12 + 60), same);
  expect_close(vt::jit(slope(slope(scaled)))(vt::tensor(1.0)), vt::tensor(360 * x4 + 120), same);
}

/// Distance of a throw with drag, which ends where it meets the ground.
Tensor thrown(Tensor vx, Tensor vy) {
  const auto [x, y, u, w] =
      vt::while_loop([](Tensor, Tensor y, Tensor, Tensor) { return y >= 0.0; },
                     [](Tensor x, Tensor y, Tensor u, Tensor w) {
                       const Tensor speed = vt::sqrt(u * u + w * w);
                       return std::tuple(x + 0.01 * u, y + 0.01 * w, u - 0.003 * speed * u,
                                         w - 0.01 * (9.81 + 0.3 * speed * w));
                     },
                     std::tuple(0.0, 0.0, vx, vy));
  return x * u;
}

TEST(ControlOrders, AllEightThirdDerivatives) {
  const Function f = [](Tensor u) { return thrown(u, vt::tensor(4.03)); };
  const Tensor at = vt::tensor(3.0), expected = pushed(pushed(pushed(f)))(at);
  expect_close(expected, vt_test::numeric_jacobian(pushed(pushed(f)), vt::reshape(at, {}), 1e-4),
               near);
  for (int kinds = 1; kinds < 8; ++kinds) {
    Function d = f;
    for (int k = 0; k < 3; ++k) d = kinds >> k & 1 ? slope(d) : pushed(d);
    expect_close(d(at), expected, same, std::to_string(kinds));
    expect_close(vt::jit(vt::vmap(d))(vt::stack({at, at})), vt::stack({expected, expected}), same,
                 std::to_string(kinds) + " in lanes");
  }
}

// Each derivative by another operand, so that each order has others.
TEST(ControlOrders, ByDifferentOperands) {
  const auto f = [](Tensor a, Tensor b, Tensor c) {
    const auto [i, u, v] =
        vt::while_loop([](Tensor i, Tensor, Tensor) { return i < 4; },
                       [&](Tensor i, Tensor u, Tensor v) {
                         return std::tuple(i + 1, vt::sin(u * a) + v, v * b + c * u);
                       },
                       std::tuple(0, a, c));
    return u * v;
  };
  const Tensor a = vt::tensor(0.5), b = vt::tensor(0.6), c = vt::tensor(0.7);
  const Tensor expected = pushed([&](Tensor x) {
    return pushed([&](Tensor y) { return pushed([&](Tensor z) { return f(x, y, z); })(c); })(b);
  })(a);
  expect_close(vt::grad<2>(vt::grad<1>(vt::grad<0>(f)))(a, b, c), expected, same);
  expect_close(vt::grad<0>(vt::grad<1>(vt::grad<2>(f)))(a, b, c), expected, same);
  expect_close(vt::jit(vt::grad<0>(vt::grad<2>(vt::grad<1>(f))))(a, b, c), expected, same);
  const auto between = [&](Tensor x, Tensor y, Tensor z) {
    return pushed([&](Tensor t) { return vt::grad<0>(f)(x, t, z); })(y);
  };
  expect_close(vt::grad<2>(between)(a, b, c), expected, same);
  const auto rows = vt::vmap(vt::grad<2>(vt::grad<1>(vt::grad<0>(f))),
                             {.in_axes = {0, vt::unmapped, vt::unmapped}});
  expect_close(rows(vt::stack({a, a}), b, c), vt::stack({expected, expected}), same);
}

// What was kept lies outside of the body that pulls.
TEST(ControlOrders, PulledInBodies) {
  const Function f = [](Tensor x) {
    return vt::while_loop([](Tensor v) { return v < 5.0; },
                          [&](Tensor v) { return v * 1.2 + x * x; }, x);
  };
  const Function in_map = [&](Tensor x) {
    const auto [y, pull] = vt::vjp(f, x);
    return vt::sum(
        vt::map([&, pull = pull](Tensor b) { return pull(b) * b; }, vt::tensor({1.0, 2.0})));
  };
  const Function in_while = [&](Tensor x) {
    const auto [y, pull] = vt::vjp(f, x);
    return vt::while_loop([](Tensor i, Tensor) { return i < 3; },
                          [&, pull = pull](Tensor i, Tensor s) {
                            return std::pair(i + 1, s * 0.5 + pull(vt::cos(s)));
                          },
                          std::pair(0, x))
        .second;
  };
  const Tensor at = vt::tensor(0.4);
  for (const Function& g : {in_map, in_while}) {
    const Tensor first = vt_test::numeric_jacobian(g, at, 1e-5),
                 second = vt_test::numeric_jacobian(pushed(g), at, 1e-5);
    expect_close(pushed(g)(at), first, near);
    expect_close(slope(g)(at), first, near);
    expect_close(vt::linearize(g, at).second(vt::tensor(1.0)), first, near);
    expect_close(slope(slope(g))(at), second, near);
    expect_close(pushed(slope(g))(at), second, near);
    expect_close(vt::vmap(slope(g))(vt::stack({at, at})), vt::stack({first, first}), near);
  }
  // By the cotangent alone.
  const Function by_cotangent = [&](Tensor b) { return vt::vjp(f, at).second(b * b); };
  const Tensor d = slope(f)(at);
  expect_close(slope(by_cotangent)(vt::tensor(3.0)), 6.0 * d, same);
  expect_close(pushed(by_cotangent)(vt::tensor(3.0)), 6.0 * d, same);
  expect_close(slope(slope(by_cotangent))(vt::tensor(3.0)), 2.0 * d, same);
}

// The derivative of a function with a backward rule is that rule transposed.
TEST(ControlOrders, PulledInARuleThatIsTransposed) {
  const Function f = [](Tensor x) { return wave(x, x); };
  const auto own = vt::custom_vjp(
      f, [&](Tensor x) { return std::pair(f(x), x); },
      [&](Tensor x, Tensor b) { return vt::vjp(f, x).second(b); });
  const auto of_lanes = [&](Tensor x, Tensor s) {
    return vt::vmap([&](Tensor v) { return f(v * s); })(x);
  };
  const auto own_lanes = vt::custom_vjp(
      of_lanes, [&](Tensor x, Tensor s) { return std::pair(of_lanes(x, s), std::pair(x, s)); },
      [&](std::pair<Tensor, Tensor> xs, Tensor b) {
        return vt::vjp(of_lanes, xs.first, xs.second).second(b);
      });
  const Tensor x = vt::tensor(0.8), xs = vt::tensor({0.8, 0.3}), s = vt::tensor(0.9);
  expect_close(pushed(own)(x), pushed(f)(x), same);
  expect_close(slope(pushed(own))(x), pushed(pushed(f))(x), same);
  expect_close(vt::vmap(pushed(own))(xs), vt::vmap(pushed(f))(xs), same);
  const auto along = std::tuple(vt::tensor({1.0, 2.0}), vt::tensor(0.5));
  expect_close(vt::jvp(own_lanes, std::tuple(xs, s), along).second,
               vt::jvp(of_lanes, std::tuple(xs, s), along).second, same);
}

// One carry is the same for all lanes, and its derivatives are counted once.
TEST(ControlOrders, CarriesThatLanesShare) {
  const auto lane = [](Tensor x, Tensor s) {
    const auto [i, u, v] = vt::while_loop(
        [](Tensor i, Tensor, Tensor) { return i < 3; },
        [&](Tensor i, Tensor u, Tensor v) { return std::tuple(i + 1, vt::sin(u) * s, v * u + x); },
        std::tuple(0, s, x));
    return std::pair(u, v);
  };
  const Tensor xs = vt::tensor({0.3, 0.8, -0.4}), s = vt::tensor(0.9);
  const Function f = [&](Tensor t) {
    const auto [u, v] =
        vt::vmap([&](Tensor x) { return lane(x, t); }, {.out_axes = {vt::unmapped, 0}})(xs);
    return u * u * u + vt::sum(v * v);
  };
  const Function inside = [&](Tensor t) {
    return vt::sum(vt::vmap([&](Tensor x) {
      return vt::grad([&](Tensor r) {
        const auto [u, v] = lane(x, r);
        return u * u * u + v * v;
      })(t);
    })(xs));
  };
  for (const Function& g : {f, inside}) {
    expect_close(slope(g)(s), pushed(g)(s), same);
    expect_close(slope(slope(g))(s), pushed(pushed(g))(s), same);
    expect_close(slope(slope(slope(g)))(s), pushed(pushed(pushed(g)))(s), same);
  }
}

// A Hessian times a vector is linear in it, and seen to be.
TEST(ControlOrders, HessianProductsInSolvers) {
  const auto f = [](Tensor x) {
    return vt::sum(vt::while_loop([](Tensor v) { return vt::sum(v * v) > 0.05; },
                                  [&](Tensor v) { return vt::tanh(v * x) * 0.9; }, x));
  };
  const Tensor at = vt::tensor({0.7, -0.4, 0.9}), b = vt::tensor({1.0, 0.5, -1.0});
  const auto product = [&](Tensor v) {
    return vt::grad([&](Tensor x) { return vt::sum(vt::grad(f)(x) * v); })(at) + 20.0 * v;
  };
  expect_close(product(vt::cg(product, b)), b, near);
  const auto forward = [&](Tensor v) {
    return vt::jvp(vt::grad(f), std::tuple(at), std::tuple(v)).second + 20.0 * v;
  };
  expect_close(forward(b), product(b), same);
  expect_close(forward(vt::cg(forward, b)), b, near);
}

TEST(ControlOrders, EffectsHappenOnce) {
  std::string out;
  vt::set_print_sink([&](std::string_view line) { out += std::string(line) + "|"; });
  const Function f = [](Tensor x) {
    return vt::while_loop(
               [](Tensor i, Tensor) {
                 vt::debug_print("c{}", i);
                 return i < 2;
               },
               [&](Tensor i, Tensor v) {
                 vt::debug_print("b{}", i);
                 return std::pair(i + 1, v * x);
               },
               std::pair(0, x))
        .second;
  };
  const Function lanes = [&](Tensor x) { return vt::sum(vt::vmap(slope(f))(vt::stack({x, x}))); };
  const Function looped = [&](Tensor x) {
    return vt::fori_loop(0, vt::tensor(1), [&](Tensor, Tensor v) { return slope(f)(v); }, x);
  };
  const Function scanned = [&](Tensor x) {
    return vt::fori_loop(0, 1, [&](Tensor, Tensor v) { return slope(f)(v); }, x);
  };
  for (const Function& g :
       {slope(f), slope(slope(f)), slope(slope(slope(f))), pushed(slope(f)),
        slope(pushed(slope(f))), slope(vt::checkpoint(slope(f))), slope(slope(vt::checkpoint(f))),
        slope(lanes), slope(vt::checkpoint(lanes)), slope(slope(looped)), slope(slope(scanned))}) {
    g(vt::tensor(2.0)).eval();
    EXPECT_EQ(out, "c0|b0|c1|b1|c2|");
    out.clear();
    vt::jit(g)(vt::tensor(2.0)).eval();
    EXPECT_EQ(out, "c0|b0|c1|b1|c2|");
    out.clear();
  }
  vt::set_print_sink(nullptr);
}

// A rule need be no true derivative; then second derivatives by it are not symmetric, and are those
// of the iterations one after the other all the same.
TEST(ControlOrders, RulesThatAreNoDerivatives) {
  // The rule's own value is that of the function with the rule, so that all derivatives are by the
  // rule.
  Function bent;
  bent = [&](Tensor x) {
    return vt::custom_jvp([](Tensor v) { return vt::sin(v); },
                          [&](Tensor v, Tensor dv) {
                            return std::pair(bent(v),
                                             dv + v[0] * vt::flip(dv) * vt::tensor({1.0, 0.0}));
                          })(x);
  };
  const auto iteration = [&](Tensor v, Tensor x) { return bent(v) * x; };
  const std::function<Tensor(Tensor)> iterations[] = {
      [=](Tensor x) {
        return vt::fori_loop(
            0, vt::tensor(2), [&](Tensor, Tensor v) { return iteration(v, x); }, x);
      },
      [=](Tensor x) { return iteration(iteration(x, x), x); }};
  const Tensor point = vt::tensor({0.7, -0.4});
  const auto all = [&](const std::function<Tensor(Tensor)>& f) {
    const auto squares = [=](Tensor x) {
      return vt::sum(vt::square(f(x)) * vt::tensor({1.0, 3.0}));
    };
    return std::vector<Tensor>{vt::jacrev(f)(point),
                               vt::jacrev(vt::jacrev(f))(point),
                               vt::jacfwd(vt::jacrev(f))(point),
                               vt::jacrev(vt::jacfwd(f))(point),
                               vt::jacfwd(vt::jacfwd(f))(point),
                               vt::hessian(squares)(point),
                               vt::jacrev(vt::grad(squares))(point)};
  };
  const std::vector<Tensor> looped = all(iterations[0]), unrolled = all(iterations[1]);
  for (std::size_t i = 0; i < looped.size(); ++i) {
    SCOPED_TRACE(i);
    expect_close(looped[i], unrolled[i], same);
  }
}

TEST(ControlOrders, RulesThatCapture) {
  const auto with = [](Tensor w) {
    return [=](Tensor x) {
      const auto scaled =
          vt::custom_jvp([=](Tensor v) { return v * w; },
                         [=](Tensor v, Tensor dv) { return std::pair(v * w, dv * w); });
      return vt::fori_loop(
          0, vt::tensor(3), [&](Tensor, Tensor v) { return vt::sin(scaled(v)); }, x);
    };
  };
  const Function plain = [](Tensor x) {
    return vt::fori_loop(0, 3, [](Tensor, Tensor v) { return vt::sin(v * 1.3); }, x);
  };
  const Tensor x = vt::tensor(0.7), expected = pushed(pushed(plain))(x);
  const Function f = with(vt::tensor(1.3));
  for (const Function& d : {slope(slope(f)), pushed(slope(f)), slope(pushed(f))})
    expect_close(d(x), expected, same);
  expect_close(slope(slope(slope(f)))(x), pushed(pushed(pushed(plain)))(x), same);
  // A Tensor that an outer function is about.
  const auto by_both = [&](Tensor w, Tensor v) { return slope(slope(with(w)))(v); };
  expect_close(vt::jit(by_both)(vt::tensor(1.3), x), expected, same);
  expect_close(vt::vmap(by_both)(vt::tensor({1.3, 1.3}), vt::stack({x, x})),
               vt::stack({expected, expected}), same);
  EXPECT_THROW(slope([&](Tensor w) { return with(w)(x); })(vt::tensor(1.3)), vt::Error);
}

}  // namespace
