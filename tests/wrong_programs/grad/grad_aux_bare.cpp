// expect: with vt::has_aux the function must return std::pair(value, aux)
#include <vt/vt.hpp>

int main() {
  vt::grad([](vt::Tensor a) { return a; }, vt::has_aux)(vt::tensor(1.0));
}
