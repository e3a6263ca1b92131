// expect: vt::curve_fit: the model must take a tree like the guess and one point: write
#include <vt/vt.hpp>

int main() {
  vt::curve_fit([](vt::Tensor p) { return p; }, vt::ones({3}), vt::ones({3}), vt::ones({2}));
}
