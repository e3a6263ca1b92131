// expect: the function's result holds no vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::jacobian([](vt::Tensor a) { return 1.0; })(vt::tensor(1.0));
}
