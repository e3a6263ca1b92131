// expect: vt::Dataset::map: the function cannot be called with an element
#include <vt/vt.hpp>

int main() {
  vt::Dataset(vt::arange(3)).map([](vt::Tensor a, vt::Tensor b) { return a; });
}
