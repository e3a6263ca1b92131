// expect: vt::vjp: no argument holds a vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::vjp([](double a) { return vt::Tensor(a); }, 3.0);
}
