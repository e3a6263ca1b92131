// expect: vt::map: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::map([](vt::Tensor a, vt::Tensor b) { return a + b; }, vt::arange(3));
}
