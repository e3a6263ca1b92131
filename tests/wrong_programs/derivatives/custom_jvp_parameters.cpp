// expect: vt::custom_jvp: the rule cannot be called with the arguments and their tangents
#include <vt/vt.hpp>

int main() {
  vt::custom_jvp([](vt::Tensor a) { return a; },
                 [](vt::Tensor a) { return std::pair(a, a); })(vt::tensor(1.0));
}
