// expect: vt: arguments are told in angle brackets: vt::jacobian<1>(f)
#include <vt/vt.hpp>

int main() {
  const auto f = [](vt::Tensor x, vt::Tensor w) { return x * w; };
  const vt::Tensor by_w = vt::jacobian(f, 1)(vt::ones({2}), vt::ones({2}));
  return by_w.rank();
}
