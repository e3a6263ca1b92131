// expect: vt::jvp: the tangents must be trees like the primals
#include <vt/vt.hpp>

int main() {
  vt::jvp([](vt::Tensor a, vt::Tensor b) { return a; },
          std::tuple(vt::tensor(1.0), vt::tensor(1.0)), vt::tensor(1.0));
}
