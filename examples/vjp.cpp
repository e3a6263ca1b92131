// vjp: a value and a function that pulls a cotangent of the result back to the arguments.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

int main() {
  auto f = [](vt::Tensor x, vt::Tensor w) { return vt::softmax(vt::matmul(w, x)); };
  const vt::Tensor x = vt::tensor({1.0, -0.5, 0.25});
  const vt::Tensor w = vt::reshape(vt::cos(vt::arange(12).astype(vt::f64)), {4, 3});

  const auto [y, pull] = vt::vjp(f, x, w);
  const auto [x_bar, w_bar] = pull(vt::tensor({1.0, 0.0, 0.0, 0.0}));
  std::cout << "softmax " << y << "\npulled back to x " << x_bar << '\n';

  // The same by the gradient of the first entry.
  const auto [gx, gw] =
      vt::grad<0, 1>([&](vt::Tensor x, vt::Tensor w) { return f(x, w)[0]; })(x, w);
  int failures = support::check("pull and grad, x", x_bar, gx, 1e-14) +
                 support::check("pull and grad, w", w_bar, gw, 1e-14);

  // pull is linear and may be mapped: the whole Jacobian from one forward pass.
  auto by_x = [&pull = pull](vt::Tensor y_bar) { return std::get<0>(pull(y_bar)); };
  std::vector<vt::Tensor> rows;
  const vt::Tensor basis = vt::eye(4, vt::f64);
  for (int i = 0; i < 4; ++i) rows.push_back(by_x(basis[i]));
  return failures +
         support::check("vmap of pull and the loop", vt::vmap(by_x)(basis), vt::stack(rows), 1e-14);
}
