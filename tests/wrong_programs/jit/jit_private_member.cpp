// expect: is or holds what is no tree
#include <vt/vt.hpp>
class P {
  vt::Tensor a;
};

int main() {
  P p;
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
