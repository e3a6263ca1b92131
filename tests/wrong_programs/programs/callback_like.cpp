// expect: vt::callback, vt::pure_callback: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() {
  vt::callback([](vt::Tensor a) { return std::weak_ptr<int>(); },
               std::weak_ptr<int>())(vt::tensor(1.0));
}
