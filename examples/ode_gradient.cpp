// while_loop: the gradient of an ODE solver that chooses its own steps, so that their number
// depends on the data; and of many at once.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>
#include <iostream>

#include "support/check.hpp"

/// y(1) of y' = r·y·(1 − y), y(0) = y0, and the number of steps tried: Bogacki and Shampine's
/// method of order 3, whose error is taken from the difference to one of order 2.
std::pair<vt::Tensor, vt::Tensor> solve(vt::Tensor r, vt::Tensor y0) {
  const auto slope = [&](vt::Tensor y) { return r * y * (1.0 - y); };
  const auto [t, y, h, tried] = vt::while_loop(
      [](vt::Tensor time, vt::Tensor, vt::Tensor, vt::Tensor) { return time < 1.0; },
      [&](vt::Tensor time, vt::Tensor value, vt::Tensor step, vt::Tensor count) {
        const vt::Tensor dt = vt::minimum(step, 1.0 - time);
        const vt::Tensor k1 = slope(value), k2 = slope(value + 0.5 * dt * k1),
                         k3 = slope(value + 0.75 * dt * k2);
        const vt::Tensor next = value + dt * (2.0 * k1 + 3.0 * k2 + 4.0 * k3) / 9.0;
        const vt::Tensor error =
            vt::abs(dt * (-5.0 * k1 / 72.0 + k2 / 12.0 + k3 / 9.0 - slope(next) / 8.0));
        // The steps are chosen, not differentiated.
        const vt::Tensor factor =
            vt::clip(0.9 * vt::pow(vt::stop_gradient(error) / 1e-8 + 1e-12, -1.0 / 3), 0.2, 5.0);
        return vt::cond(
            error < 1e-8, [&] { return std::tuple(time + dt, next, dt * factor, count + 1); },
            [&] { return std::tuple(time, value, dt * factor, count + 1); });
      },
      std::tuple(0.0, y0, 0.1, 0));
  return {y, tried};
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
      support::check("gradient and the exact one", dr, vt::tensor(exact_slope(2, 0.1)), 1e-6);
  failures += support::check(
      "forward mode", vt::jacfwd([](vt::Tensor r) { return solve(r, 0.1).first; })(vt::tensor(2.0)),
      dr, 1e-12);

  // Each lane takes the steps that it needs.
  const vt::Tensor rates = vt::tensor({0.0, 1.0, 4.0, 16.0});
  const auto [slopes, counts] =
      vt::vmap(slope, {.in_axes = {0, vt::unmapped}})(rates, vt::tensor(0.1));
  std::cout << "for the rates " << rates << "\nsteps " << counts << "\nslopes " << slopes << '\n';
  std::vector<double> expected;
  for (double r : rates.to_vector<double>()) expected.push_back(exact_slope(r, 0.1));
  return failures + support::check("slopes of all rates", slopes, vt::tensor(expected), 1e-6);
}
