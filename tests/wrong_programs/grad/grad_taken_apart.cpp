// expect: vt: auto [a, b] = t: t is one vt::Tensor. vt::grad(f) gives the derivative by the first
//         argument alone, vt::grad<0, 1>(f) by both
#include <vt/vt.hpp>

int main() {
  const auto f = [](vt::Tensor x, vt::Tensor y) { return x * y; };
  const auto [by_x, by_y] = vt::grad(f)(vt::tensor(1.0), vt::tensor(2.0));
  return by_x.rank() + by_y.rank();
}
