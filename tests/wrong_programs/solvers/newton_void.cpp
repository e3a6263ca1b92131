// expect: vt::newton: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::newton([](vt::Tensor x) {}, vt::tensor(1.0));
}
