// expect: vt::fixed_point: the function must take a tree like the second argument
#include <vt/vt.hpp>

int main() {
  vt::fixed_point([](vt::Tensor x) { return std::pair(x, x); }, vt::tensor(1.0));
}
