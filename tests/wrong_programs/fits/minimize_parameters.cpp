// expect: vt::minimize: the function must take a tree like the guess and return one vt::Tensor
#include <vt/vt.hpp>

int main() {
  auto s = vt::minimize([](vt::Tensor a, vt::Tensor b) { return a + b; }, vt::ones({2}));
  return static_cast<int>(s.x.size());
}
