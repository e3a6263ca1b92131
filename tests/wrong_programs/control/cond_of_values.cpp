// expect: vt::cond takes functions
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::cond(x[0] > 0.0, x, -x);
}
