// expect: vt: the guess is a vt::Tensor or a tree of them
#include <vt/vt.hpp>

int main() {
  vt::least_squares([](vt::Tensor x) { return x; }, {1.0, 2.0});
}
