// Gradient descent inside gradient descent, with the whole differentiated by a parameter: loops of
// unknown length in each other, gradients in their bodies and a gradient around them.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

/// Where `f` is smallest: downhill until the slope is gone.
template <class F>
vt::Tensor smallest(F f, vt::Tensor start) {
  const auto slope = vt::grad(f);
  return vt::while_loop([&](vt::Tensor v) { return vt::abs(slope(v)) > 1e-9; },
                        [&](vt::Tensor v) { return v - 0.2 * slope(v); }, start);
}

/// The x that minimizes (x − 1)² + y², where y in its turn minimizes (y − p·x)². So y = p·x and
/// x = 1 / (1 + p²).
vt::Tensor outer(vt::Tensor p) {
  const auto inner = [=](vt::Tensor x) {
    return smallest([=](vt::Tensor y) { return vt::square(y - p * x); }, vt::tensor(0.0));
  };
  return smallest([=](vt::Tensor x) { return vt::square(x - 1.0) + vt::square(inner(x)); },
                  vt::tensor(0.0));
}

int main() {
  const auto x = [](double p) { return 1 / (1 + p * p); };
  const auto dx = [](double p) { return -2 * p / ((1 + p * p) * (1 + p * p)); };
  const vt::Tensor p = vt::tensor(0.5);
  int failures = support::check("minimum", outer(p), vt::tensor(x(0.5)), 1e-8);
  failures +=
      support::check("derivative, reverse mode", vt::grad(outer)(p), vt::tensor(dx(0.5)), 1e-6);
  failures +=
      support::check("derivative, forward mode", vt::jacfwd(outer)(p), vt::tensor(dx(0.5)), 1e-6);

  const vt::Tensor ps = vt::tensor({-1.0, 0.0, 0.25, 0.8});
  std::vector<double> expected;
  for (double v : ps.to_vector<double>()) expected.push_back(dx(v));
  const vt::Tensor slopes = vt::vmap(vt::grad(outer))(ps);
  std::cout << "dx/dp for p = " << ps << ": " << slopes << '\n';
  return failures + support::check("derivatives of many parameters at once", slopes,
                                   vt::tensor(expected), 1e-6);
}
