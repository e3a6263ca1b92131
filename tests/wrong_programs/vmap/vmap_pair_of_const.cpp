// expect: holds a const vt::Tensor
#include <vt/vt.hpp>
using P = std::pair<const vt::Tensor, vt::Tensor>;

int main() {
  P p(vt::tensor(1.0), vt::tensor(1.0));
  vt::vmap([](const P&) { return vt::tensor(1.0); })(p);
}
