// expect: vt::cond: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::cond(
      true, [](vt::Tensor c) { vt::debug_print("{}", c); }, [](vt::Tensor c) {}, vt::tensor(0.0));
}
