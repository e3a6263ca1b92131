// expect: vt::vmap: the function takes a reference that may change its argument
#include <vt/vt.hpp>

int main() {
  vt::vmap([](vt::Tensor& a) { return a; })(vt::arange(3));
}
