// expect: vt::minimize: the guess is a container of numbers
#include <vector>

#include <vt/vt.hpp>

int main() {
  vt::minimize([](vt::Tensor x) { return vt::sum(x); }, std::vector<double>{1.0, 2.0});
}
