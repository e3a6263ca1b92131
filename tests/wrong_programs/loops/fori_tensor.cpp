// expect: vt::fori_loop takes two bounds, integers or scalar Tensors, then the body
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::fori_loop(0, 2, a, vt::tensor(1));
}
