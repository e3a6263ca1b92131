// expect: vt::fori_loop: the body returns another type than that of the carry
#include <vt/vt.hpp>

int main() {
  vt::fori_loop(0, 3, [](vt::Tensor i, vt::Tensor c) { return std::pair(c, c); }, vt::tensor(0.0));
}
