// expect: holds a reference
#include <vt/vt.hpp>
struct P {
  const vt::Tensor& a;
  double b;
};

int main() {
  vt::Tensor t;
  P p{t, 1.0};
  vt::vmap([](const P&) { return vt::tensor(1.0); })(p);
}
