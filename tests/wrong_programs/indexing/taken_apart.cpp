// expect: vt::unpack<2>(t) gives the parts of t along axis 0
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({2, 3});
  auto& [first, second] = x;
  return first.rank() + second.rank();
}
