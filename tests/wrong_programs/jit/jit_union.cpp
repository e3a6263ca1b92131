// expect: is or holds what is no tree
#include <vt/vt.hpp>
union U {
  int a;
  double b;
};
struct P {
  vt::Tensor a;
  U u;
};

int main() {
  P p{};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
