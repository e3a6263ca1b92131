// expect: vt::switch_: the functions stand in a tuple
#include <vt/vt.hpp>

int main() {
  vt::switch_(1, [](vt::Tensor c) { return c; }, [](vt::Tensor c) { return -c; }, vt::tensor(0.0));
}
