// expect: vt::jit: the function cannot be called
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::jit(a)(vt::arange(2));
}
