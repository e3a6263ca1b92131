// expect: vt::checkpoint: a function returns nothing
#include <vt/vt.hpp>

int main() {
  vt::checkpoint([](vt::Tensor a) {})(vt::tensor(1.0));
}
