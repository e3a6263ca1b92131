// expect: vt::map: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::map([](vt::Tensor a) {}, vt::arange(3));
}
