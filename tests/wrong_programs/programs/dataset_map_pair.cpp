// expect: vt::Dataset::map: the function cannot be called with an element
#include <vt/vt.hpp>

int main() {
  vt::Dataset(std::pair(vt::arange(3), vt::arange(3))).map([](vt::Tensor a) { return a; });
}
