// expect: vt: y0 is a vt::Tensor or a tree of them
#include <vt/vt.hpp>

int main() {
  vt::odeint([](vt::Tensor t, vt::Tensor y) { return y; }, {1.0, 2.0});
}
