// expect: vt::Jitted::explain: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::jit([](vt::Tensor a) { return a; }).explain(vt::tensor(1.0), vt::tensor(2.0));
}
