// expect: vt::scan: the body cannot be called
#include <vt/vt.hpp>

int main() {
  vt::scan([](vt::Tensor c) { return std::pair(c, c); }, vt::tensor(0.0), vt::arange(3));
}
