// expect: vt::cond: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::cond(true, [](vt::Tensor c) { return c; }, [] { return vt::tensor(1.0); }, vt::tensor(0.0));
}
