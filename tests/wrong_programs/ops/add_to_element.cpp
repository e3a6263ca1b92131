// expect: += on a temporary changes nothing: write x = vt::index_update(x, index, value), or
//         vt::index_add and its like
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[0] += 1.0;
}
