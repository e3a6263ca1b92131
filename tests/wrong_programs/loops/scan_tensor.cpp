// expect: vt::scan: the body cannot be called
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::scan(a, vt::tensor(1), vt::arange(2));
}
