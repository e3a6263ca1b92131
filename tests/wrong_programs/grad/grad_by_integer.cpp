// expect: is an integer, which has no derivative: write 2.0, not 2
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::grad([](vt::Tensor a, vt::Tensor b) { return vt::sum(a * b); })(2, x);
}
