// expect: a struct that is a part of itself
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
  std::vector<P> kids;
};

int main() {
  P p{};
  vt::jit([](const P&) { return vt::tensor(1.0); })(p);
}
