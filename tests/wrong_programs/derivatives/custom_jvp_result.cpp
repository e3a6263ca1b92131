// expect: vt::custom_jvp: the rule must return std::pair(value, tangent)
#include <vt/vt.hpp>

int main() {
  vt::custom_jvp([](vt::Tensor a) { return a; },
                 [](vt::Tensor a, vt::Tensor da) { return a; })(vt::tensor(1.0));
}
