// expect: vt::jit: an argument or result is or holds what is no tree
// expect: std::variant<int, vt::Tensor>
#include <variant>

#include <vt/vt.hpp>
struct P {
  std::variant<int, vt::Tensor> a;
  vt::Tensor b;
};

int main() {
  P p;
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
