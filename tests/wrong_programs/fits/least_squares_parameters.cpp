// expect: vt::least_squares: the residuals must take a tree like the guess: write
#include <vt/vt.hpp>

int main() {
  auto s = vt::least_squares([](vt::Tensor a, vt::Tensor b) { return a - b; }, vt::ones({2}));
  return static_cast<int>(s.x.size());
}
