// expect: vt::instances: the first argument is no range: pass the items
#include <vt/vt.hpp>

int main() {
  vt::instances(3, [](int i) { return vt::Tensor(i); });
}
