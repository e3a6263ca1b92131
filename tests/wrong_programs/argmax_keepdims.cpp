// expect: a bool is no axis: keepdims follows the axis
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  vt::argmax(u, true);
}
