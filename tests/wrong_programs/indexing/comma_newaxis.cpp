// expect: in x[i, j] drops i: write x(i, j)
#include <vt/vt.hpp>

int main() {
  const vt::Tensor u = vt::ones({3, 3});
  u[vt::ellipsis, vt::newaxis, 2];
}
