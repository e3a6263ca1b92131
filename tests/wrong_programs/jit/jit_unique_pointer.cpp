// expect: a class that cannot be copied
#include <vt/vt.hpp>
struct P {
  std::unique_ptr<vt::Tensor> a;
};

int main() {
  P p{};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
