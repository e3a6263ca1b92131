// expect: vt::while_loop: the condition must return
#include <vt/vt.hpp>

int main() {
  vt::while_loop([](vt::Tensor) { return std::string(); }, [](vt::Tensor c) { return c; },
                 vt::tensor(0.0));
}
