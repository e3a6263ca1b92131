// expect: vt::vmap: the function's result is void
#include <vt/vt.hpp>

int main() {
  vt::vmap([](vt::Tensor) {})(vt::arange(3));
}
