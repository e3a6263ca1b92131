// expect: a class that cannot be copied
#include <atomic>

#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
  std::atomic<int> b;
};

int main() {
  P p{};
  vt::grad([](const P&) { return vt::tensor(1.0); })(p);
}
