// expect: is or holds what is no tree
#include <list>

#include <vt/vt.hpp>
struct P {
  std::list<vt::Tensor> a;
};

int main() {
  P p{};
  vt::vmap([](const P&) { return vt::tensor(1.0); })(p);
}
