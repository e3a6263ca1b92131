// expect: vt::fori_loop takes two bounds, integers or scalar Tensors, then the body
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::fori_loop(0, 3, x, [](vt::Tensor i, vt::Tensor c) { return c + i; });
}
