// expect: vt::switch_: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::switch_(1, std::tuple([](vt::Tensor c) { return c; }, [] { return vt::tensor(1.0); }),
              vt::tensor(0.0));
}
