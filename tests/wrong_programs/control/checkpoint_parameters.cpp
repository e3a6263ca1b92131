// expect: vt::checkpoint: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::checkpoint([](vt::Tensor a, vt::Tensor b) { return a; })(vt::tensor(1.0));
}
