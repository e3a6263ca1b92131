// expect: vt::fori_loop: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::fori_loop(0, 3, [](vt::Tensor i, vt::Tensor c) {}, vt::tensor(0.0));
}
