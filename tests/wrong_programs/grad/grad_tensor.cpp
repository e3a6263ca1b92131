// expect: vt::grad, vt::value_and_grad: the function cannot be called
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::grad(a)(vt::arange(2));
}
