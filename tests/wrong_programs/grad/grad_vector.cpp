// expect: the function must return one scalar vt::Tensor
#include <vt/vt.hpp>

int main() {
  vt::grad([](vt::Tensor a) { return std::vector<vt::Tensor>{a}; })(vt::tensor(1.0));
}
