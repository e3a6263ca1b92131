// expect: vt::callback, vt::pure_callback: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::callback([](vt::Tensor a, vt::Tensor b) { return a; }, vt::tensor(1.0))(vt::tensor(1.0));
}
