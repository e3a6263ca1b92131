// expect: write x = vt::index_update(x, index, value)
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[0] = 9.0;
}
