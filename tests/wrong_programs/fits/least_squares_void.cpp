// expect: vt::least_squares: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::least_squares([](vt::Tensor x) {}, vt::ones({2}));
}
