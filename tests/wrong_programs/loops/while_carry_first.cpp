// expect: vt::while_loop: the functions come first: vt::while_loop(condition, body, init)
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::while_loop(
      x, [](vt::Tensor c) { return c[0] < 3; }, [](vt::Tensor c) { return c + 1; });
}
