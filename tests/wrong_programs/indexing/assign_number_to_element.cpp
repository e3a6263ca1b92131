// expect: write x = vt::at(x, index).set(value)
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[0] = 9.0;
}
