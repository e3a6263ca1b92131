// grad and value_and_grad: reverse-mode derivatives of functions of any tree of Tensors.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

struct Line {
  vt::Tensor slope, offset;
};

int main() {
  const vt::Tensor x = vt::tensor({0.0, 1.0, 2.0, 3.0}), y = vt::tensor({1.0, 3.1, 4.9, 7.0});
  auto error = [&](Line line) { return vt::mean(vt::square(line.slope * x + line.offset - y)); };

  // The gradient has the argument's own type.
  Line line{vt::tensor(0.0), vt::tensor(0.0)};
  for (int step = 0; step < 400; ++step) {
    const auto [value, slope] = vt::value_and_grad(error)(line);
    line = {(line.slope - 0.1 * slope.slope).eval(), (line.offset - 0.1 * slope.offset).eval()};
  }
  std::cout << "fitted slope " << line.slope << ", offset " << line.offset << '\n';
  int failures =
      support::check("least squares by gradient descent and by hand",
                     vt::stack({line.slope, line.offset}), vt::tensor({1.98, 1.03}), 1e-6);

  // Second derivative: grad of grad. Plain C++ control flow follows the value.
  auto f = [](vt::Tensor t) { return t.item<double>() > 0 ? vt::sin(t) : vt::square(t); };
  failures += support::check("grad of grad of sin", vt::grad(vt::grad(f))(vt::tensor(0.5)),
                             -vt::sin(vt::tensor(0.5)), 1e-12);
  failures += support::check("grad of grad of square", vt::grad(vt::grad(f))(vt::tensor(-0.5)),
                             vt::tensor(2.0), 1e-12);

  // Several arguments, and a result beside the value.
  auto scaled = [](vt::Tensor a, vt::Tensor b) {
    return std::pair(vt::sum(a * vt::exp(b)), a + b);
  };
  const auto [by_both, aux] = vt::grad<0, 1>(scaled, vt::has_aux)(x, y);
  failures += support::check("by the first argument", std::get<0>(by_both), vt::exp(y), 1e-12);
  failures += support::check("by the second argument", std::get<1>(by_both), x * vt::exp(y), 1e-12);
  failures += support::check("the other result", aux, x + y, 1e-12);
  return failures;
}
