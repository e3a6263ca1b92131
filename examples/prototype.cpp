// A prototype without a build of vt. vt.cpp beside it holds the implementation and is compiled once;
// this file is compiled in seconds after every change:
//   g++ -std=c++20 -O1 -I include -c examples/vt.cpp
//   g++ -std=c++20 -O2 -I include examples/prototype.cpp vt.o -ldl -pthread
#include <vt/vt.hpp>

#include <cmath>
#include <iostream>

int main() {
  auto energy = [](vt::Tensor q) { return vt::sum(1.0 - vt::cos(q)); };        // pendulums
  auto force = [&](vt::Tensor q) { return -vt::grad(energy)(q); };             // by differentiation
  const vt::Tensor angles = vt::tensor({{0.1, 0.2}, {1.0, 2.0}, {3.0, 0.0}});  // three states
  const vt::Tensor forces = vt::jit(vt::vmap(force))(angles);
  std::cout << forces << '\n';
  return std::abs(forces[1][0].item<double>() + std::sin(1.0)) < 1e-12 ? 0 : 1;
}
