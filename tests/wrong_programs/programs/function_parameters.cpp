// expect: vt::function: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::function("f", [](vt::Tensor a) { return a; })(vt::tensor(1.0), vt::tensor(2.0));
}
