// expect: vt::associative_scan: the function returns another type
#include <vt/vt.hpp>

int main() {
  vt::associative_scan([](vt::Tensor a, vt::Tensor b) { return std::pair(a, b); }, vt::arange(3));
}
