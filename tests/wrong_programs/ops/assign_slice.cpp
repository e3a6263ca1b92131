// expect: write x = vt::index_update(x, index, value)
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[vt::slice(0, 2)] = u;
}
