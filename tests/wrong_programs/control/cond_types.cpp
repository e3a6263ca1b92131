// expect: vt::cond: on_true and on_false return different types
#include <vt/vt.hpp>

int main() {
  vt::cond(
      true, [](vt::Tensor c) { return c; }, [](vt::Tensor c) { return std::pair(c, c); },
      vt::tensor(0.0));
}
