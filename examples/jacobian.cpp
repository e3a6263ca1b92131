// jacobian, jacfwd, jacrev: all derivatives of a vector function at once; the cheaper direction is
// chosen from the shapes.
#include <vt/vt.hpp>

#include <iostream>

#include "support/check.hpp"

int main() {
  // Where the tip of a two-link arm is, by its joint angles.
  auto tip = [](vt::Tensor angles) {
    const vt::Tensor a = angles[0], b = angles[0] + angles[1];
    return vt::stack({vt::cos(a) + 0.5 * vt::cos(b), vt::sin(a) + 0.5 * vt::sin(b)});
  };
  const vt::Tensor angles = vt::tensor({0.3, 0.7});
  const vt::Tensor j = vt::jacobian(tip)(angles);
  std::cout << "d tip / d angles " << j << '\n';

  // The loop: one column per joint by central differences.
  const double h = 1e-6;
  std::vector<vt::Tensor> columns;
  for (int i = 0; i < 2; ++i) {
    const vt::Tensor step = h * vt::one_hot(i, 2, vt::f64);
    columns.push_back((tip(angles + step) - tip(angles - step)) / (2 * h));
  }
  int failures = support::check("jacobian and central differences", j, vt::stack(columns, 1), 1e-8);
  failures += support::check("forward and reverse mode", vt::jacfwd(tip)(angles),
                             vt::jacrev(tip)(angles), 1e-14);

  // For many poses at once, in blocks of one row at a time to save memory.
  const vt::Tensor poses = vt::reshape(vt::linspace(0.0, 3.0, 20).astype(vt::f64), {10, 2});
  const vt::Tensor all = vt::vmap(vt::jacrev(tip, {.chunk = 1}))(poses);
  std::vector<vt::Tensor> one_by_one;
  for (int i = 0; i < 10; ++i) one_by_one.push_back(vt::jacobian(tip)(poses[i]));
  failures += support::check("vmap of jacrev and the loop", all, vt::stack(one_by_one), 1e-12);
  return failures;
}
