// expect: the function must return one scalar vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::grad([](vt::Tensor a) { return std::pair(std::pair(a, a), a); },
           vt::has_aux)(vt::tensor(1.0));
}
