// expect: vt::fori_loop: the body cannot be called
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::fori_loop(0, 2, a, vt::tensor(1));
}
