// expect: vt::custom_vjp, a rule: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::custom_vjp([](vt::Tensor a) { return a; }, [](vt::Tensor a) { return std::pair(a, a); },
                 [](vt::Tensor r, vt::Tensor c) {})(vt::tensor(1.0));
}
