// expect: vt::autobatch: an argument or result is or holds a pointer
#include <vt/vt.hpp>

#include <memory>

int main() {
  vt::autobatch([](const vt::Tensor& x) { return std::make_unique<vt::Tensor>(x); })(
      vt::tensor(1.0));
}
