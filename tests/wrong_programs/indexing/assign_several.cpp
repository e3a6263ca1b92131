// expect: assignment to an element or another temporary changes nothing: write x =
//         vt::at(x, index).set(value)
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3, 3});
  u(0, 1) = vt::tensor(9.0);
}
