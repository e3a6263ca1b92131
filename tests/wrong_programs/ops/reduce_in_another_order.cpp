// expect: the operand comes first: vt::reduce(x, init, f, axes)
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::reduce([](vt::Tensor a, vt::Tensor b) { return a + b; }, 0.0, x);
}
