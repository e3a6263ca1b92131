// expect: vt::grad, vt::value_and_grad: an argument or result is or holds a pointer
#include <vt/vt.hpp>

#include <vector>

int main() {
  const auto loss = vt::autobatch([](const vt::Tensor& x, const std::vector<int*>&) { return x; });
  vt::grad(loss)(vt::tensor(1.0), std::vector<int*>{});
}
