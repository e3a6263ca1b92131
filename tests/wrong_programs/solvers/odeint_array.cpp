// expect: vt::odeint: y0 is a container of numbers
#include <array>

#include <vt/vt.hpp>

int main() {
  vt::odeint([](vt::Tensor t, std::array<double, 2> y) { return y; },
             std::array<double, 2>{1.0, 2.0});
}
