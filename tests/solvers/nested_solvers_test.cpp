// Solvers inside of each other, in loops and branches, and loops and branches inside of them: each
// pair under every transform, beside loops over lanes and differences.
#include <functional>
#include <map>
#include <random>
#include <string>

#include "support/property.hpp"

namespace {

using vt::Tensor;
using vt_test::expect_close;
using vt_test::Tolerance;
using Function = std::function<Tensor(Tensor)>;

constexpr Tolerance same{.relative = 1e-7, .absolute = 1e-8},
    near{.relative = 1e-5, .absolute = 1e-6};

// Each makes of a smooth function f, with |f| and |f′| of about 1, such a function of x, and calls
// f where its own loop computes.
using Around = Function (*)(const Function& f);

Function root_by_brentq(const Function& f) {
  return [=](Tensor x) {
    return vt::brentq([=](Tensor u) { return u + 0.3 * f(u) - x; }, -8.0, 8.0, {.xtol = 1e-13}).x;
  };
}
Function root_by_newton(const Function& f) {
  return [=](Tensor x) {
    return vt::newton([=](Tensor u) { return u + 0.3 * f(u) - x; }, 0.5, {.tolerance = 1e-12});
  };
}
Function fixed_point(const Function& f) {
  return [=](Tensor x) {
    return vt::fixed_point([=](Tensor u) { return x - 0.3 * f(u); }, 0.5, {.tolerance = 1e-12});
  };
}
Function fit(const Function& f) {
  return [=](Tensor x) {
    const auto residuals = [=](Tensor p) {
      return vt::stack({p[0] + 0.3 * f(p[0]) - x, 2.0 * p[1] - vt::sin(p[0])});
    };
    return vt::sum(vt::least_squares(residuals, vt::tensor({0.5, 0.0}), {.gtol = 1e-13}).x);
  };
}
Function minimum(const Function& f, vt::MinimizeMethod method) {
  return [=](Tensor x) {
    const auto cost = [=](Tensor p) {
      return 0.5 * vt::square(p - x) + 0.05 * vt::square(f(p)) + 0.1 * vt::cos(p);
    };
    return vt::minimize(cost, 0.5, {.method = method, .gtol = 1e-12}).x;
  };
}
Function minimum_by_l_bfgs(const Function& f) { return minimum(f, vt::MinimizeMethod::l_bfgs); }
Function minimum_by_newton(const Function& f) { return minimum(f, vt::MinimizeMethod::newton); }
Function solution(const Function& f, vt::OdeMethod method) {
  return [=](Tensor x) {
    const auto slope = [=](Tensor t, Tensor y) { return x - 2.0 * y + 0.3 * f(y) * vt::cos(t); };
    return vt::odeint(slope, 0.5 * x, {.method = method, .rtol = 1e-10, .atol = 1e-10}).y;
  };
}
Function solution_by_tsit5(const Function& f) { return solution(f, vt::OdeMethod::tsit5); }
Function solution_by_rodas5p(const Function& f) { return solution(f, vt::OdeMethod::rodas5p); }
Function in_scan(const Function& f) {
  return [=](Tensor x) {
    const auto step = [=](Tensor c, Tensor row) {
      const Tensor next = 0.5 * f(c) + 0.5 * row * x;
      return std::pair(next, c);
    };
    return vt::scan(step, x, vt::tensor({0.7, -0.4, 1.1})).first;
  };
}
Function in_while(const Function& f) {
  return [=](Tensor x) {
    // The last steps fall to 0 with their slopes, so that the number of steps makes no corner.
    const auto part = [](Tensor y) {
      const Tensor rest = vt::pow(vt::maximum(1.2 - y, 0.0), 3.0);
      return rest / (1.0 + rest);
    };
    const auto [count, last] = vt::while_loop(
        [=](Tensor i, Tensor y) { return (i < 4) & (part(y) > 0.0); },
        [=](Tensor i, Tensor y) { return std::tuple(i + 1, y + 0.2 * part(y) * f(y)); },
        std::tuple(vt::tensor(0), x));
    return last;
  };
}
Function in_cond(const Function& f) {
  return [=](Tensor x) {
    const auto corrected = [=](Tensor y) { return f(y) + 0.1 * vt::pow(y - 0.35, 3.0); };
    return vt::cond(x > 0.35, [=](Tensor y) { return f(y); }, corrected, x);
  };
}
Function in_checkpoint(const Function& f) {
  return [=](Tensor x) { return vt::checkpoint([=](Tensor y) { return f(y) + 0.1 * y; })(x); };
}
Function in_jit(const Function& f) {
  return [=](Tensor x) { return vt::jit([=](Tensor y) { return f(y) * 0.9; })(x); };
}
Function slope_of(const Function& f) {
  return [=](Tensor x) { return vt::grad([=](Tensor y) { return f(y) + 0.5 * y * y; })(x); };
}
Function of_lanes(const Function& f) {
  return [=](Tensor x) {
    return vt::mean(vt::vmap([=](Tensor s) { return f(s * x); })(vt::tensor({0.5, 0.9, 1.1})));
  };
}

const std::pair<const char*, Around> solvers[] = {
    {"brentq", root_by_brentq},    {"newton", root_by_newton},
    {"fixed_point", fixed_point},  {"least_squares", fit},
    {"L-BFGS", minimum_by_l_bfgs}, {"Newton's minimum", minimum_by_newton},
    {"tsit5", solution_by_tsit5},  {"rodas5p", solution_by_rodas5p}};
const std::pair<const char*, Around> others[] = {
    {"scan", in_scan}, {"while", in_while}, {"cond", in_cond}, {"checkpoint", in_checkpoint},
    {"jit", in_jit},   {"grad", slope_of},  {"vmap", of_lanes}};

Tensor leaf(const Tensor& x) { return vt::sin(1.3 * x) + 0.2 * x; }

void expect_transforms(const Function& f, const Tensor& xs) {
  const auto each = [&](const Function& g) {
    return vt_test::stack_loop([one = vt::jit(g)](Tensor x) { return one(x); }, 0, xs);
  };
  const Tensor values = each(f);
  expect_close(f(xs[1]), values[1], same, "alone");
  expect_close(vt::jit(vt::vmap(f))(xs), values, same, "lanes");
  const double h = 1e-4;
  const Tensor rise = each([&](Tensor x) { return (f(x + h) - f(x - h)) / (2 * h); });
  expect_close(vt::jit(vt::vmap(vt::grad(f)))(xs), rise, near, "reverse in lanes");
  const auto all = [&](Tensor many) { return vt::sum(vt::vmap(f)(many)); };
  expect_close(vt::grad(all)(xs), rise, near, "reverse of lanes");
  const auto forward = [&](Tensor x) {
    return vt::jvp(f, std::tuple(x), std::tuple(vt::ones_like(x))).second;
  };
  expect_close(each(Function(forward)), rise, near, "forward");
}

TEST(NestedSolvers, AreTheLoopAndHaveDerivatives) {
  const Tensor xs = vt::tensor({-0.9, 0.1, 0.6, 1.3});
  std::mt19937_64 choose(vt_test::environment("VT_FUZZ_SEED", 1));
  const auto one = [&](const auto& list) { return list[choose() % std::size(list)]; };
  // Each solver once around another or a loop, and once within one.
  for (const auto& solver : solvers)
    for (const bool outside : {true, false}) {
      const auto other = choose() % 2 == 0 ? one(solvers) : one(others);
      const auto& [outer, inner] = outside ? std::pair(solver, other) : std::pair(other, solver);
      SCOPED_TRACE(std::string(outer.first) + " around " + inner.first);
      expect_transforms(outer.second(inner.second(leaf)), xs);
    }
}

}  // namespace
