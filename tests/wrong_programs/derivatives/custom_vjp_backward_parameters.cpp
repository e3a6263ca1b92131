// expect: vt::custom_vjp: the backward function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::custom_vjp([](vt::Tensor a) { return a; }, [](vt::Tensor a) { return std::pair(a, a); },
                 [](vt::Tensor r) { return r; })(vt::tensor(1.0));
}
