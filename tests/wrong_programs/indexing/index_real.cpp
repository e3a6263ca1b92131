// expect: no match for call
// only: g++
#include <vt/vt.hpp>

int main() {
  const vt::Tensor u = vt::ones({3, 3});
  u(0, 1.5);
}
