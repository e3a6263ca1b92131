// expect: vt::fori_loop: the bounds must be integers
#include <vt/vt.hpp>

int main() {
  vt::fori_loop(std::string(), 3, [](vt::Tensor i, vt::Tensor c) { return c; }, vt::tensor(0.0));
}
