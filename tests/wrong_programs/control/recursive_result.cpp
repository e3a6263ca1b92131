// expect: vt::Recursive: the function must take these parameters and return this type
#include <vt/vt.hpp>

int main() {
  vt::Recursive<vt::Tensor(vt::Tensor)> f("f", [](vt::Tensor a) { return std::pair(a, a); });
}
