// expect: is or holds a set
#include <set>

#include <vt/vt.hpp>
struct P {
  std::set<int> a;
  vt::Tensor b;
};

int main() {
  P p;
  vt::vmap([](const P&) { return vt::tensor(1.0); })(p);
}
