// expect: a reference, a std::span or a bit-field
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
  int b : 3;
};

int main() {
  P p{};
  vt::grad([](const P&) { return vt::tensor(1.0); })(p);
}
