// expect: the body must return pair(carry, y)
#include <vt/vt.hpp>

#include <iostream>

int main() {
  const auto body = [](vt::Tensor carry, vt::Tensor x) { return carry + x; };
  const auto [last, ys] = vt::scan(body, 0.0, vt::arange(3));
  std::cout << last << ys << vt::scan(body, 0.0, vt::arange(3)).second + 1;
}
