// expect: vt: arguments are told in angle brackets: vt::value_and_grad<1>(f)
#include <vt/vt.hpp>

int main() {
  const auto f = [](vt::Tensor x, vt::Tensor w) { return x * w; };
  const auto [value, by_w] = vt::value_and_grad(f, 1)(vt::tensor(1.0), vt::tensor(2.0));
  return value.rank() + by_w.rank();
}
