// compiles
#include <array>
#include <vector>

#include <vt/vt.hpp>

int main() {
  using Two = std::array<vt::Tensor, 2>;
  auto s =
      vt::minimize([](std::vector<vt::Tensor> x) { return x[0] * x[0]; }, std::vector<double>{1.0});
  auto y = vt::odeint([](vt::Tensor, Two now) { return now; }, std::array<double, 2>{1.0, 2.0});
  return static_cast<int>(s.x.size() + y.y.size());
}
