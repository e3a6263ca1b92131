// expect: vt::map: the function comes first
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::map(a, vt::arange(2));
}
