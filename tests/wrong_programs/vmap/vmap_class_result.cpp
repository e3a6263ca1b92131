// expect: vt::vmap: an argument or result is or holds what is no tree
#include <vt/vt.hpp>
class C {
  vt::Tensor a_;

 public:
  explicit C(vt::Tensor a) : a_(a) {}
};

int main() {
  vt::vmap([](vt::Tensor a) { return C(a); })(vt::arange(3));
}
