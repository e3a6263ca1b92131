// expect: vt::cond takes functions
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3), x = vt::tensor(1);
  vt::cond(true, a, a, x);
}
