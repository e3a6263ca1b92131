// expect: vt::Dataset::map: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::Dataset(vt::arange(3)).map([](vt::Tensor a) {});
}
