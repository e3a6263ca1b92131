// expect: the function must return one scalar vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::grad([](vt::Tensor a) { return 1.0; })(vt::tensor(1.0));
}
