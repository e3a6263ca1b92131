// expect: vt::while_loop
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::while_loop(a, a, vt::tensor(1));
}
