// expect: vt::fori_loop: the body cannot be called
#include <vt/vt.hpp>

int main() {
  vt::fori_loop(0, 3, [](vt::Tensor c) { return c; }, vt::tensor(0.0));
}
