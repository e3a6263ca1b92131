// hessian: all second derivatives; here Newton's method finds the minimum of Rosenbrock's valley.
#include <vt/vt.hpp>

#include <cstdio>

#include "support/check.hpp"

int main() {
  auto valley = [](vt::Tensor p) {
    return 100.0 * vt::square(p[1] - vt::square(p[0])) + vt::square(1.0 - p[0]);
  };
  const auto slope = vt::jit(vt::grad(valley));
  const auto curvature = vt::jit(vt::hessian(valley));

  vt::Tensor p = vt::tensor({-1.2, 1.0});
  int steps = 0;
  for (; steps < 20; ++steps) {
    const std::vector<double> g = slope(p).to_vector<double>(),
                              h = curvature(p).to_vector<double>();
    if (std::abs(g[0]) + std::abs(g[1]) < 1e-12) break;
    const double determinant = h[0] * h[3] - h[1] * h[2];
    p = (p - vt::tensor({(h[3] * g[0] - h[1] * g[1]) / determinant,
                         (h[0] * g[1] - h[2] * g[0]) / determinant}))
            .eval();
  }
  std::printf("the minimum after %d Newton steps: (%.12f, %.12f)\n", steps, p[0].item<double>(),
              p[1].item<double>());
  int failures = support::check("minimum", p, vt::tensor({1.0, 1.0}), 1e-10);

  // The loop: one row at a time from the gradient's own derivative.
  const vt::Tensor q = vt::tensor({0.5, -0.25});
  std::vector<vt::Tensor> rows;
  for (int i = 0; i < 2; ++i)
    rows.push_back(vt::grad([&](vt::Tensor x) { return vt::grad(valley)(x)[i]; })(q));
  return failures + support::check("hessian and the loop over rows", vt::hessian(valley)(q),
                                   vt::stack(rows), 1e-12);
}
