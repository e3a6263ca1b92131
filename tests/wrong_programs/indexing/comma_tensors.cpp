// expect: in x[i, j] drops i: write x(i, j)
#include <vt/vt.hpp>

int main() {
  const vt::Tensor u = vt::ones({3, 3}), i = vt::tensor(1);
  u[i, i];
}
