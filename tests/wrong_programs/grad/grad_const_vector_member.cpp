// expect: holds a const vt::Tensor
#include <vt/vt.hpp>
struct P {
  const std::vector<vt::Tensor> a;
  double b;
};

int main() {
  P p{{vt::tensor(1.0)}, 1};
  vt::grad([](const P&) { return vt::tensor(1.0); })(p);
}
