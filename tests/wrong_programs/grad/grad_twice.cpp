// expect: the number of an argument is given twice
#include <vt/vt.hpp>

int main() {
  vt::grad<0, 0>([](vt::Tensor a) { return a; })(vt::tensor(1.0));
}
