// expect: several Tensors where one belongs: vt::stack(tensors) makes one of them
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  (void)vt::sum(std::vector<vt::Tensor>{x, x});
}
