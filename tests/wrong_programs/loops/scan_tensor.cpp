// expect: vt::scan: the body comes first
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::scan(a, vt::tensor(1), vt::arange(2));
}
