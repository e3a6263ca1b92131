// expect: vt::scan: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() {
  vt::scan([](vt::Tensor c, vt::Tensor x) { return std::pair(c, std::weak_ptr<int>()); },
           vt::tensor(0.0), vt::arange(3));
}
