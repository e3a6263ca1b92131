// expect: vt: the shape stands in braces: vt::full({3}, value)
#include <vt/vt.hpp>

int main() {
  const vt::Tensor x = vt::full(3, 1.0);
  return x.rank();
}
