// expect: vt::while_loop: the condition cannot be called with the carry
#include <vt/vt.hpp>

int main() {
  vt::while_loop([](double c) { return c < 3; }, [](double c) { return c + 1; }, 0.0);
}
