// minimize inside minimize, with the whole differentiated by a parameter: the outer solver needs
// the gradient of the inner one's solution, and there is a gradient around both.
#include <vt/vt.hpp>

#include <iostream>

#include "../support/check.hpp"

/// The x that minimizes (x − 1)² + y², where y in its turn minimizes (y − p·x)². So y = p·x and
/// x = 1 / (1 + p²).
vt::Tensor outer(vt::Tensor p) {
  const auto inner = [=](vt::Tensor x) {
    return vt::minimize([=](vt::Tensor y) { return vt::square(y - p * x); }, 0.0).x;
  };
  return vt::minimize([=](vt::Tensor x) { return vt::square(x - 1.0) + vt::square(inner(x)); }, 0.0)
      .x;
}

int main() {
  const auto x = [](double p) { return 1 / (1 + p * p); };
  const auto dx = [](double p) { return -2 * p / ((1 + p * p) * (1 + p * p)); };
  const vt::Tensor p = vt::tensor(0.5);
  int failures = support::check("minimum", outer(p), vt::tensor(x(0.5)), 1e-10);
  failures +=
      support::check("derivative, reverse mode", vt::grad(outer)(p), vt::tensor(dx(0.5)), 1e-10);
  failures +=
      support::check("derivative, forward mode", vt::jacfwd(outer)(p), vt::tensor(dx(0.5)), 1e-10);

  const vt::Tensor ps = vt::tensor({-1.0, 0.0, 0.25, 0.8});
  std::vector<double> expected;
  for (double v : ps.to_vector<double>()) expected.push_back(dx(v));
  const vt::Tensor slopes = vt::vmap(vt::grad(outer))(ps);
  std::cout << "dx/dp for p = " << ps << ": " << slopes << '\n';
  return failures + support::check("derivatives of many parameters at once", slopes,
                                   vt::tensor(expected), 1e-10);
}
