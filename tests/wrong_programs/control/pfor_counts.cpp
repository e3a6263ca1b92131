// compiles
#include <vt/vt.hpp>

int main() {
  const vt::Tensor n = vt::tensor(3);
  auto f = [](vt::Tensor i) { return i; };
  vt::pfor(f, n), vt::pfor(f, vt::tensor({1, 2})[0]), vt::pfor(f, std::uint8_t{3});
  vt::pfor(f, vt::tensor(2) + 1, {.at_most = 4});
}
