// expect: a bool given for ord: keepdims comes last
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  vt::linalg::norm(u, true);
}
