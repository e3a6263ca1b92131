// expect: vt: the guess is a vt::Tensor or a tree of them
#include <vt/vt.hpp>

int main() {
  vt::minimize([](vt::Tensor x) { return vt::sum(x); }, {1.0, 2.0});
}
