// expect: an argument to differentiate by holds no vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::grad<0, 1>([](vt::Tensor a, int n) { return a; })(vt::tensor(1.0), 2);
}
