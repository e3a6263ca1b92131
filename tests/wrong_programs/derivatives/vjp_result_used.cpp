// expect: no argument holds a vt::Tensor
#include <vt/vt.hpp>

#include <iostream>

int main() {
  auto [value, pull] = vt::vjp([](double x) { return vt::tensor(x); }, 2.0);
  const auto of_x = pull(1.0);
  std::cout << value << of_x;
}
