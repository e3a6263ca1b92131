// expect: a bool is no axis: keepdims follows the axes
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  vt::sum(u, true);
}
