// expect: vt::autobatch: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::autobatch([](const vt::Tensor&) {})(vt::tensor(1.0));
}
