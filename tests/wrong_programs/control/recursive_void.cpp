// expect: vt::Recursive: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::Recursive<void(vt::Tensor)> f("f", [](vt::Tensor) {});
  f(vt::tensor(1.0));
}
