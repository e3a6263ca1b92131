// expect: vt::tree_map: the function takes a vt::Tensor of each tree
#include <vt/vt.hpp>

int main() {
  vt::tree_map([](vt::Tensor a) { return std::pair(a, a); },
               std::pair(vt::tensor(1.0), vt::tensor(2.0)));
}
