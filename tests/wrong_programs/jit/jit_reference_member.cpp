// expect: holds a reference
#include <vt/vt.hpp>
struct P {
  vt::Tensor& a;
};

int main() {
  vt::Tensor t;
  P p{t};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
