// expect: std::pair(value, aux) with vt::has_aux
#include <vt/vt.hpp>

int main() {
  vt::value_and_grad([](vt::Tensor a) { return std::pair(a, a); })(vt::tensor(1.0));
}
