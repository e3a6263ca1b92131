// expect: vt::curve_fit: x or the guess is a container of numbers
#include <vector>

#include <vt/vt.hpp>

int main() {
  vt::curve_fit([](vt::Tensor p, vt::Tensor x) { return p[0] * x; }, vt::ones({3}), vt::ones({3}),
                std::vector<double>{1.0});
}
