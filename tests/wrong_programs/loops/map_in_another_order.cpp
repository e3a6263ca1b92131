// expect: vt::map: the function comes first: vt::map(f, xs)
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::map(x, [](vt::Tensor a) { return a; });
}
