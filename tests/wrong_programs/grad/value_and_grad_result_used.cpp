// expect: the function must return one scalar vt::Tensor
#include <vt/vt.hpp>

#include <iostream>

int main() {
  const auto f = [](vt::Tensor a, vt::Tensor b) { return std::vector<vt::Tensor>{a, b}; };
  const auto [value, gradient] = vt::value_and_grad<0, 1>(f)(1.0, 2.0);
  const auto [by_a, by_b] = gradient;
  std::cout << value << by_a << value.item<double>() << by_b.shape();
}
