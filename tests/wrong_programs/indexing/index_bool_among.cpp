// expect: a bool is no index
#include <vt/vt.hpp>

int main() {
  const vt::Tensor u = vt::ones({3, 3});
  u(0, true);
}
