// expect: nodiscard
#include <vt/vt.hpp>

#pragma GCC diagnostic error "-Wunused-result"

int main() {
  vt::Tensor x = vt::ones({3});
  vt::index_update(x, 1, 5.0);
}
