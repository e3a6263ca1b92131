// expect: vt::associative_scan: the function comes first
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::associative_scan(x, [](vt::Tensor a, vt::Tensor b) { return a + b; });
}
