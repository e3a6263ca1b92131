// expect: vt::associative_scan: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::associative_scan([](vt::Tensor a, vt::Tensor b) {}, vt::arange(3));
}
