// A program outside of vt's tree: one transform, checked.
#include <vt/vt.hpp>

#include <cmath>
#include <cstdio>

int main() {
  auto f = [](vt::Tensor x) { return vt::sum(vt::sin(x)); };
  const vt::Tensor x = vt::tensor({0.0, 1.0, 2.0});
  const std::vector<double> slope = vt::grad(f)(x).to_vector<double>();
  for (int i = 0; i < 3; ++i)
    if (std::abs(slope[i] - std::cos(i)) > 1e-14) return 1;
  std::puts("ok");
  return 0;
}
