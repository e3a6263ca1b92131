// expect: vt::minimize: the function must take a tree like the guess and return one vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::minimize([](vt::Tensor x) { return std::pair(x, x); }, vt::ones({2}));
}
