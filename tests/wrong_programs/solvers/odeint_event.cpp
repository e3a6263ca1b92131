// expect: vt::odeint: an event must take the time and a tree like y0
#include <vt/vt.hpp>

int main() {
  vt::odeint([](vt::Tensor t, vt::Tensor y) { return y; }, vt::tensor(1.0), {},
             [](vt::Tensor y) { return y; });
}
