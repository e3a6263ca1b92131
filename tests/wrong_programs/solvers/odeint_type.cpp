// expect: vt::odeint: the function must take the time and a tree like y0
#include <vt/vt.hpp>

int main() {
  vt::odeint([](vt::Tensor t, vt::Tensor y) { return std::pair(y, y); }, vt::tensor(1.0));
}
