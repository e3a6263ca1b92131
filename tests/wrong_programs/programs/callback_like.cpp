// expect: vt::callback, vt::pure_callback: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() {
  vt::callback([](vt::Tensor a) { return std::make_shared<int>(1); },
               std::make_shared<int>(1))(vt::tensor(1.0));
}
