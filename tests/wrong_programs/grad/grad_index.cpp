// expect: there is no argument of that number: they are counted from 0
#include <vt/vt.hpp>

int main() {
  vt::grad<1>([](vt::Tensor a) { return a; })(vt::tensor(1.0));
}
