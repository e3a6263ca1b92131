// expect: vt::custom_vmap: the rule cannot be called
#include <vt/vt.hpp>

int main() {
  vt::custom_vmap([](vt::Tensor a) { return a; }, [](vt::Tensor a) { return a; })(vt::tensor(1.0));
}
