// expect: vt::tree_map: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() {
  vt::tree_map([](vt::Tensor a) { return a; }, std::weak_ptr<int>());
}
