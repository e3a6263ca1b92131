// expect: an argument to differentiate by holds no vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::grad([](double a, double b) { return vt::Tensor(a) * a + b; })(3.0, 1.0);
}
