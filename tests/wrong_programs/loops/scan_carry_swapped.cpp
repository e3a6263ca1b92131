// expect: vt::scan: the first of the pair that the body returns is of another type than the carry
#include <vt/vt.hpp>

int main() {
  vt::scan([](std::pair<vt::Tensor, vt::Tensor> c, vt::Tensor x) { return std::pair(x, c); },
           std::pair(vt::tensor(0.0), vt::tensor(1.0)), vt::arange(3));
}
