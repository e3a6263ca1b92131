// expect: vt::pfor: the function comes first: vt::pfor(f, n)
#include <vt/vt.hpp>

int main() {
  vt::pfor(3, [](vt::Tensor i) { return i; });
}
