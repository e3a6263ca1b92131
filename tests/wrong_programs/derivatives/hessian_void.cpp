// expect: vt::hessian: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::hessian([](vt::Tensor a) {})(vt::tensor(1.0));
}
