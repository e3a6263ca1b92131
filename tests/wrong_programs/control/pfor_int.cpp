// expect: vt::pfor: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::pfor([](int i) { return vt::tensor(1.0); }, 3);
}
