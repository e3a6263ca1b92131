// expect: vt::hessian: there is no argument of that number
#include <vt/vt.hpp>

int main() {
  vt::hessian<2>([](vt::Tensor a) { return a; })(vt::tensor(1.0));
}
