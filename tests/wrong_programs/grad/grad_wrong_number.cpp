// expect: vt::grad, vt::value_and_grad: the function cannot be called with these arguments
#include <vt/vt.hpp>

int main() {
  vt::grad([](vt::Tensor a) { return sum(a); })(vt::tensor(1.0), vt::tensor(2.0));
}
