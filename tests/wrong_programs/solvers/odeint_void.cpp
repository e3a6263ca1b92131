// expect: vt::odeint: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::odeint([](vt::Tensor t, vt::Tensor y) {}, vt::tensor(1.0));
}
