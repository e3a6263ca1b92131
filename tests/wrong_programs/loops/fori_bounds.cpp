// expect: vt::fori_loop takes two bounds, integers or scalar Tensors
#include <vt/vt.hpp>

int main() {
  vt::fori_loop(std::string(), 3, [](vt::Tensor i, vt::Tensor c) { return c; }, vt::tensor(0.0));
}
