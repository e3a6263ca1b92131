// expect: vt: arguments are told in angle brackets: vt::grad<1>(f)
#include <vt/vt.hpp>

int main() {
  const auto f = [](vt::Tensor x, vt::Tensor w) { return x * w; };
  const vt::Tensor by_w = vt::grad(f, 1)(vt::tensor(1.0), vt::tensor(2.0));
  return by_w.rank();
}
