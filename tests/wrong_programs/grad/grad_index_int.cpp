// expect: is an integer, which has no derivative: write 2.0, not 2
#include <vt/vt.hpp>

int main() {
  vt::grad<0, 1>([](vt::Tensor a, int n) { return a; })(vt::tensor(1.0), 2);
}
