// expect: vt::scan: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() {
  vt::scan([](vt::Tensor c, vt::Tensor x) { return std::pair(c, std::make_shared<int>(1)); },
           vt::tensor(0.0), vt::arange(3));
}
