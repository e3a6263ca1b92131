// expect: vt::associative_scan: the function cannot be called with two elements
#include <vt/vt.hpp>

int main() {
  vt::associative_scan([](vt::Tensor a) { return a; }, vt::arange(3));
}
