// expect: the shape stands in braces: vt::ones({2, 3})
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::ones(2, 3);
}
