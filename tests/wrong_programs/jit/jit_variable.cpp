// expect: is or holds what is no tree
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
  vt::Variable b;
};

int main() {
  P p{vt::tensor(1.0), vt::Variable(1.0)};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
