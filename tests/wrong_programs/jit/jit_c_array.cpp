// expect: a struct with a C array as a member
#include <vt/vt.hpp>
struct P {
  vt::Tensor b;
  double a[2];
};

int main() {
  P p{};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
