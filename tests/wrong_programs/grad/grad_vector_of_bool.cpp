// expect: std::vector<bool>
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
  std::vector<bool> b;
};

int main() {
  P p;
  vt::grad([](const P&) { return vt::tensor(1.0); })(p);
}
