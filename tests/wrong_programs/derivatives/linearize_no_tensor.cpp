// expect: vt::linearize: no argument holds a vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::linearize([](double a) { return vt::Tensor(a); }, 3.0);
}
