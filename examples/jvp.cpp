// jvp: a value and its derivative along one direction, in one forward pass.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

int main() {
  auto f = [](vt::Tensor x, vt::Tensor w) { return vt::tanh(vt::matmul(x, w)); };
  const vt::Tensor x = vt::tensor({{1.0, 0.5}, {-0.5, 2.0}}),
                   w = vt::tensor({{0.3, -0.2}, {0.1, 0.4}});
  const vt::Tensor dx = vt::ones_like(x), dw = vt::eye(2, vt::f64);

  const auto [y, dy] = vt::jvp(f, std::tuple(x, w), std::tuple(dx, dw));
  std::cout << "value " << y << "\nderivative along (dx, dw) " << dy << '\n';

  const double h = 1e-6;
  const vt::Tensor numeric = (f(x + h * dx, w + h * dw) - f(x - h * dx, w - h * dw)) / (2 * h);
  int failures = support::check("value", y, f(x, w), 1e-14) +
                 support::check("jvp and central differences", dy, numeric, 1e-8);

  // Many directions at once: vmap over the tangent only.
  const vt::Tensor directions = vt::reshape(vt::eye(4, vt::f64), {4, 2, 2});
  auto along = [&](vt::Tensor d) {
    return vt::jvp(f, std::tuple(x, w), std::tuple(d, vt::zeros_like(w))).second;
  };
  std::vector<vt::Tensor> one_by_one;
  for (int i = 0; i < 4; ++i) one_by_one.push_back(along(directions[i]));
  return failures + support::check("vmap of jvp and the loop", vt::vmap(along)(directions),
                                   vt::stack(one_by_one), 1e-14);
}
