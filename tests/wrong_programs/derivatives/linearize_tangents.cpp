// expect: vt::linearize: the derivative takes a tangent for each argument
#include <vt/vt.hpp>

int main() {
  auto [v, push] = vt::linearize([](vt::Tensor a) { return a; }, vt::tensor(1.0));
  push(vt::tensor(1.0), vt::tensor(2.0));
}
