// expect: vt::while_loop: the body cannot be called with the carry
#include <vt/vt.hpp>

int main() {
  vt::while_loop([](vt::Tensor c) { return c < 3; }, [](vt::Tensor c, vt::Tensor d) { return c; },
                 vt::tensor(0.0));
}
