// odeint: the gradient of a differential equation's solution by its rate; and of many at once, each
// of which takes the steps that it needs.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

#include "../support/check.hpp"

/// y(1) of y' = r·y·(1 − y), y(0) = y0, and the number of steps.
std::pair<vt::Tensor, vt::Tensor> solve(vt::Tensor r, vt::Tensor y0) {
  const auto slope = [&](vt::Tensor, vt::Tensor y) { return r * y * (1.0 - y); };
  const auto s = vt::odeint(slope, y0, {.rtol = 1e-10, .atol = 1e-10});
  return {s.y, s.iterations};
}

int main() {
  // The solution and its derivative by r are known.
  const auto exact = [](double r, double y0) { return 1 / (1 + (1 / y0 - 1) * std::exp(-r)); };
  const auto exact_slope = [&](double r, double y0) {
    return exact(r, y0) * exact(r, y0) * (1 / y0 - 1) * std::exp(-r);
  };

  const auto slope = vt::grad(solve, vt::has_aux);  // by r; the number of steps comes along
  const auto [dr, steps] = slope(vt::tensor(2.0), vt::tensor(0.1));
  std::cout << "d y(1) / d r = " << dr << " after " << steps << " steps\n";
  int failures =
      support::check("gradient and the exact one", dr, vt::tensor(exact_slope(2, 0.1)), 1e-9);
  failures += support::check(
      "forward mode", vt::jacfwd([](vt::Tensor r) { return solve(r, 0.1).first; })(vt::tensor(2.0)),
      dr, 1e-12);

  const vt::Tensor rates = vt::tensor({0.0, 1.0, 4.0, 16.0});
  const auto [slopes, counts] =
      vt::vmap(slope, {.in_axes = {0, vt::unmapped}})(rates, vt::tensor(0.1));
  std::cout << "for the rates " << rates << "\nsteps " << counts << "\nslopes " << slopes << '\n';
  std::vector<double> expected;
  for (double r : rates.to_vector<double>()) expected.push_back(exact_slope(r, 0.1));
  return failures + support::check("slopes of all rates", slopes, vt::tensor(expected), 1e-9);
}
