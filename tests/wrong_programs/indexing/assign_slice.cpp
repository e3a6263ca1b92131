// expect: write x = vt::at(x, index).set(value)
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[vt::slice(0, 2)] = u;
}
