// expect: sequences of numbers are vt::tensor(values)
#include <vt/vt.hpp>

int main() {
  vt::scan([](vt::Tensor c, double x) { return std::pair(c, c); }, vt::tensor(0.0),
           std::vector<double>{1, 2});
}
