// expect: vt::brentq: the function must take one vt::Tensor and return one: write
#include <vt/vt.hpp>

int main() {
  vt::brentq([](vt::Tensor x) { return std::pair(x, x); }, 0.0, 1.0);
}
