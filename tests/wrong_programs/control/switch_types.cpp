// expect: vt::switch_: the functions return different types
#include <vt/vt.hpp>

int main() {
  vt::switch_(
      1, std::tuple([](vt::Tensor c) { return c; }, [](vt::Tensor c) { return std::pair(c, c); }),
      vt::tensor(0.0));
}
