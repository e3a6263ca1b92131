// expect: vt::custom_vjp, a rule: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() {
  vt::custom_vjp([](vt::Tensor a) { return a; },
                 [](vt::Tensor a) { return std::pair(a, std::weak_ptr<int>()); },
                 [](std::weak_ptr<int>, vt::Tensor c) { return c; })(vt::tensor(1.0));
}
