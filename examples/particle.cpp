// A charged particle that flies until it hits the ground: where it lands is minimized by Newton's
// method. The force is a derivative, and so is each step of Newton's; both are taken forward and in
// reverse, in all four combinations. After Siskind and Pearlmutter 2008, Using Polyvariant
// Union-Free Flow Analysis to Compile a Higher-Order Functional-Programming Language with a
// First-Class Derivative Operator to Efficient Fortran-like Code.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>
#include <functional>

#include "support/check.hpp"

using Function = std::function<vt::Tensor(vt::Tensor)>;
using Derivative = std::function<Function(Function)>;

/// The square of x where the particle crosses y = 0; `w` moves one of the charges.
vt::Tensor landing(vt::Tensor w, const Derivative& derivative) {
  const vt::Tensor charges =
      vt::stack({vt::stack({vt::tensor(10.0), 10.0 - w}), vt::tensor({10.0, 0.0})});
  const Function potential = [&](vt::Tensor at) {
    return vt::sum(1.0 / vt::norm(at - charges, 2, 1));
  };
  const Function force = derivative(potential);
  const double dt = 0.1;
  const auto [at, speed] = vt::while_loop(
      [&](vt::Tensor x, vt::Tensor v) { return x[1] + dt * v[1] > 0.0; },
      [&](vt::Tensor x, vt::Tensor v) { return std::pair(x + dt * v, v - dt * force(x)); },
      std::pair(vt::tensor({0.0, 8.0}), vt::tensor({0.75, 0.0})));
  return vt::square(at[0] - speed[0] * at[1] / speed[1]);
}

/// The same in plain C++.
double landing(double w) {
  const double dt = 0.1, charges[2][2] = {{10, 10 - w}, {10, 0}};
  double x = 0, y = 8, vx = 0.75, vy = 0;
  while (y + dt * vy > 0) {
    double ax = 0, ay = 0;
    for (const auto& [cx, cy] : charges) {
      const double r = std::hypot(x - cx, y - cy);
      ax += (x - cx) / (r * r * r);
      ay += (y - cy) / (r * r * r);
    }
    x += dt * vx, y += dt * vy;
    vx += dt * ax, vy += dt * ay;
  }
  return std::pow(x - vx * y / vy, 2);
}

int main() {
  const Derivative forward = [](Function f) -> Function { return vt::jacfwd(f); };
  const Derivative reverse = [](Function f) -> Function { return vt::jacrev(f); };
  int failures = 0;
  for (bool outer_forward : {true, false})
    for (bool inner_forward : {true, false}) {
      std::printf("Newton's steps %s, the force %s\n", outer_forward ? "forward" : "in reverse",
                  inner_forward ? "forward" : "in reverse");
      const Derivative outer = outer_forward ? forward : reverse,
                       inner = inner_forward ? forward : reverse;
      const Function f = [&](vt::Tensor w) { return landing(w, inner); };
      const Function slope = outer(f);
      const auto both = vt::jit([&](vt::Tensor w) { return std::pair(slope(w), outer(slope)(w)); });
      double w = 0;
      for (int step = 0; step < 5; ++step) {
        const auto [first, second] = both(vt::tensor(w));
        w -= first.item<double>() / second.item<double>();
      }
      const double h = 1e-4, at = landing(w), before = landing(w - h), after = landing(w + h);
      std::printf("  w = %.12f\n", w);
      const auto [first, second] = both(vt::tensor(w));
      failures += support::check("  landing in plain C++", f(vt::tensor(w)), vt::tensor(at), 1e-9);
      failures += support::check("  slope, none there", first, vt::tensor(0.0), 1e-9);
      failures += support::check("  curvature and differences in plain C++", second,
                                 vt::tensor((before - 2 * at + after) / (h * h)), 1e-5);
    }
  return failures;
}
