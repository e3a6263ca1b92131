// expect: a bool is no index
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[true];
}
