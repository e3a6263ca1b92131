// expect: vt::Adam::step: the gradient must be a tree like the parameters: write
#include <vt/vt.hpp>

int main() {
  const std::pair<vt::Tensor, vt::Tensor> p{vt::ones({2}), vt::ones({3})};
  auto [q, s] = vt::Adam().step(p, p.first, vt::Adam().init(p));
}
