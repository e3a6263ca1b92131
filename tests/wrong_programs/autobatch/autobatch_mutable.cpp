// expect: vt::autobatch: the function changes itself, as a mutable lambda does
#include <vt/vt.hpp>

int main() {
  vt::autobatch([n = 0](const vt::Tensor& x) mutable { return x * ++n; })(vt::tensor(1.0));
}
