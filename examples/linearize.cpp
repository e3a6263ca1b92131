// linearize: evaluates once and returns the linear map of derivatives there, to apply often.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

int main() {
  auto f = [](vt::Tensor x) { return vt::cumsum(vt::exp(vt::sin(x))); };
  const vt::Tensor x = vt::linspace(-1.0, 1.0, 5).astype(vt::f64);
  const auto [y, push] = vt::linearize(f, x);
  std::cout << "value " << y << '\n';

  int failures = 0;
  std::vector<vt::Tensor> columns;
  const vt::Tensor basis = vt::eye(5, vt::f64);
  for (int i = 0; i < 5; ++i) {
    const vt::Tensor direct = vt::jvp(f, std::tuple(x), std::tuple(basis[i])).second;
    columns.push_back(push(basis[i]));
    failures += support::difference(columns.back(), direct) > 1e-14;
  }
  failures +=
      support::check("columns of the Jacobian", vt::stack(columns, 1), vt::jacobian(f)(x), 1e-14);
  const vt::Tensor sum = push(basis[0] + 3.0 * basis[4]);
  return failures + support::check("linear", sum, columns[0] + 3.0 * columns[4], 1e-13);
}
