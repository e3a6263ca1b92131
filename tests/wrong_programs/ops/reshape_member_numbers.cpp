// expect: vt: the shape stands in braces: x.reshape({2, 3})
#include <vt/vt.hpp>

int main() {
  const vt::Tensor x = vt::ones({6}).reshape(2, 3);
  return x.rank();
}
