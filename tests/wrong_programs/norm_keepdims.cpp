// expect: a bool given for ord or ddof: keepdims comes after it
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  vt::norm(u, 0, true);
}
