// hessian: all second derivatives; here at the minimum of Rosenbrock's valley.
#include <vt/vt.hpp>

#include <iostream>
#include <vector>

#include "support/check.hpp"

int main() {
  auto valley = [](vt::Tensor p) {
    return 100.0 * vt::square(p[1] - vt::square(p[0])) + vt::square(1.0 - p[0]);
  };
  const auto s =
      vt::minimize(valley, vt::tensor({-1.2, 1.0}), {.method = vt::MinimizeMethod::newton});
  const vt::Tensor at_minimum = vt::hessian(valley)(s.x);
  std::cout << "the minimum after " << s.iterations.item<int>() << " Newton steps: " << s.x
            << "\ncurvature along the valley and across it: " << vt::linalg::eigvalsh(at_minimum)
            << '\n';
  int failures = support::check("minimum", s.x, vt::tensor({1.0, 1.0}), 1e-10);
  failures += support::check("hessian at the minimum", at_minimum,
                             vt::tensor({{802.0, -400.0}, {-400.0, 200.0}}), 1e-8);

  // The loop: one row at a time from the gradient's own derivative.
  const vt::Tensor q = vt::tensor({0.5, -0.25});
  std::vector<vt::Tensor> rows;
  for (int i = 0; i < 2; ++i)
    rows.push_back(vt::grad([&](vt::Tensor x) { return vt::grad(valley)(x)[i]; })(q));
  return failures + support::check("hessian and the loop over rows", vt::hessian(valley)(q),
                                   vt::stack(rows), 1e-12);
}
