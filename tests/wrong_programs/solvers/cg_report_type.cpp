// expect: vt::cg: the function must take a tree like the second argument and return one like it
#include <vt/vt.hpp>

int main() {
  auto s = vt::cg([](vt::Tensor x) { return std::pair(x, x); }, vt::ones({2}), vt::with_report);
  return static_cast<int>(s.x.size());
}
