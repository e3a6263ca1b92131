// expect: vt::custom_jvp: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::custom_jvp([](vt::Tensor a, vt::Tensor b) { return a; },
                 [](vt::Tensor a, vt::Tensor da) { return std::pair(a, da); })(vt::tensor(1.0));
}
