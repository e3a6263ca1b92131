// expect: is or holds a pointer
#include <vt/vt.hpp>
struct P {
  vt::Tensor* a;
};

int main() {
  P p{};
  vt::vmap([](const P&) { return vt::tensor(1.0); })(p);
}
