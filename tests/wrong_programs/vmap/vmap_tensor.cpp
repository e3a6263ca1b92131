// expect: vt::vmap: the function cannot be called
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::vmap(a)(vt::arange(2));
}
