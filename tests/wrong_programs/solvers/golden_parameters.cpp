// expect: vt::golden: the function must take one vt::Tensor and return one: write
#include <vt/vt.hpp>

int main() {
  vt::golden([](vt::Tensor x, vt::Tensor y) { return x + y; }, 0.0, 0.5, 1.0);
}
