// expect: vt::newton: the function must take a tree like the second argument
#include <vt/vt.hpp>

int main() {
  vt::newton([](vt::Tensor x, vt::Tensor y) { return x; }, vt::tensor(1.0));
}
