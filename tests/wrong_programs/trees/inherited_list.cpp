// expect: vt::jit: an argument or result is or holds a class whose list tree_members is that of its
//     base
#include <vt/vt.hpp>
struct Layer {
  vt::Tensor weights;
  static constexpr auto tree_members = std::tuple(&Layer::weights);
};
struct Dense : Layer {
  vt::Tensor offset;
};

int main() {
  vt::jit([](const Dense& d) { return d.weights + d.offset; })(Dense());
}
