// expect: the Tensors stand in braces: vt::stack({x, y}, axis)
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::stack(x, x);
}
