// expect: vt::while_loop: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::while_loop([](vt::Tensor c) { return c < 3; }, [](vt::Tensor c) { c = c + 1; },
                 vt::tensor(0.0));
}
