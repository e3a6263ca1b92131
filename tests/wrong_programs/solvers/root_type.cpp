// expect: vt::root: the function must take a tree like the second argument
#include <vt/vt.hpp>

int main() {
  vt::root([](vt::Tensor x) { return std::pair(x, x); }, vt::tensor(1.0),
           [](auto f, vt::Tensor x) { return x; });
}
