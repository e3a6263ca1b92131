// expect: vt::while_loop: the body returns another type than that of the carry
#include <vt/vt.hpp>

int main() {
  vt::while_loop([](vt::Tensor c) { return c < 3; }, [](vt::Tensor c) { return std::pair(c, c); },
                 vt::tensor(0.0));
}
