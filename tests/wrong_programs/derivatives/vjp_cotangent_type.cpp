// expect: vt::vjp: the cotangent must be a tree like the function's result
#include <vt/vt.hpp>

int main() {
  auto [v, pull] = vt::vjp([](vt::Tensor a) { return a; }, vt::tensor(1.0));
  pull(std::pair(vt::tensor(1.0), v));
}
