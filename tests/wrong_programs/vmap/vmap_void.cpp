// expect: vt::vmap: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::vmap([](vt::Tensor) {})(vt::arange(3));
}
