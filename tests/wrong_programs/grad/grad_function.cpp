// expect: is or holds what is no tree
#include <functional>

#include <vt/vt.hpp>
struct P {
  std::function<vt::Tensor(vt::Tensor)> a;
  vt::Tensor b;
};

int main() {
  P p;
  vt::grad([](const P&) { return vt::tensor(1.0); })(p);
}
