// expect: vt::pfor: the function comes first: vt::pfor(f, n)
#include <vt/vt.hpp>

int main() {
  vt::Tensor n = vt::tensor(3);
  vt::pfor(n, [](vt::Tensor i) { return i; }, {.at_most = 4});
}
