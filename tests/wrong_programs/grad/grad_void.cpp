// expect: vt::grad, vt::value_and_grad: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::grad([](vt::Tensor a) {})(vt::tensor(1.0));
}
