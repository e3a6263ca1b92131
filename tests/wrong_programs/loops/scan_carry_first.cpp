// expect: vt::scan: the body comes first: vt::scan(body, init, xs)
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::scan(0.0, x, [](vt::Tensor c, vt::Tensor e) { return std::pair(c, e); });
}
