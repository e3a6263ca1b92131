// expect: vt::vmap: the function cannot be called with these arguments
#include <vt/vt.hpp>

int main() {
  vt::vmap([](vt::Tensor a) { return a; })(std::string("a"));
}
