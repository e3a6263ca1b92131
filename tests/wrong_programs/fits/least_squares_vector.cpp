// expect: vt::least_squares: the guess is a container of numbers
#include <vector>

#include <vt/vt.hpp>

int main() {
  vt::least_squares([](vt::Tensor x) { return x; }, std::vector<double>{1.0, 2.0});
}
