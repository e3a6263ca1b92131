// expect: vt::cg: the function must take a tree
#include <vt/vt.hpp>

int main() {
  vt::cg([](vt::Tensor x) { return x; }, vt::ones({2}),
         [](vt::Tensor a, vt::Tensor b) { return a; });
}
