// expect: is or holds a pointer
#include <vt/vt.hpp>
struct P {
  std::weak_ptr<vt::Tensor> a;
  vt::Tensor b;
};

int main() {
  P p{};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
