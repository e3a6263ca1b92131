// expect: vt::scan: the body must return pair(carry, y)
#include <vt/vt.hpp>

int main() {
  vt::scan([](vt::Tensor c, vt::Tensor x) { return std::tuple(c, x, x); }, vt::tensor(0.0),
           vt::arange(3));
}
