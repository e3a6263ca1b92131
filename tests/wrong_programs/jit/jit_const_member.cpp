// expect: holds a const vt::Tensor
#include <vt/vt.hpp>
struct P {
  const vt::Tensor a;
};

int main() {
  P p{vt::tensor(1.0)};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
