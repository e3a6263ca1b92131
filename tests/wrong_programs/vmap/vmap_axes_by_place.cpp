// expect: vt::vmap(f, {a, b}) would be in_axes and out_axes: write vt::vmap(f, {.in_axes = {a, b}})
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  vt::vmap([](vt::Tensor x, vt::Tensor y) { return x * y; }, {0, vt::unmapped})(u, u);
}
