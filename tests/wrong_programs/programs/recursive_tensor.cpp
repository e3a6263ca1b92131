// expect: vt::Recursive: the function must take these parameters
#include <vt/vt.hpp>

int main() {
  const vt::Tensor a = vt::arange(3);
  vt::Recursive<vt::Tensor(vt::Tensor)> f("f", a);
}
