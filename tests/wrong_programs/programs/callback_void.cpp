// expect: vt::callback, vt::pure_callback: the function must return a tree like the one given
#include <vt/vt.hpp>

int main() {
  vt::callback([](vt::Tensor a) {}, vt::tensor(1.0))(vt::tensor(1.0));
}
