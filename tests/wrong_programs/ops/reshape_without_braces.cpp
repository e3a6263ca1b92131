// expect: the shape stands in braces: vt::reshape(x, {2, 3})
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::reshape(x, 3, 1);
}
