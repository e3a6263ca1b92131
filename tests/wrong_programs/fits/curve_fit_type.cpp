// expect: vt::curve_fit: the model must return one vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::curve_fit([](vt::Tensor p, vt::Tensor x) { return std::pair(p, x); }, vt::ones({3}),
                vt::ones({3}), vt::ones({2}));
}
