// expect: vt::root: a solver must take the function and a tree
#include <vt/vt.hpp>

int main() {
  vt::root([](vt::Tensor x) { return x; }, vt::tensor(1.0), [](auto f, vt::Tensor x) { return x; },
           [](vt::Tensor x) { return x; });
}
