// expect: vt: arguments are told in angle brackets: vt::hessian<1>(f)
#include <vt/vt.hpp>

int main() {
  const auto f = [](vt::Tensor x, vt::Tensor w) { return vt::sum(x * w * w); };
  const vt::Tensor by_w = vt::hessian(f, 1)(vt::ones({2}), vt::ones({2}));
  return by_w.rank();
}
