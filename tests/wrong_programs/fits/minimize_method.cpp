// expect: vt: options have names: vt::minimize(f, guess, {.method =
#include <vt/vt.hpp>

int main() {
  vt::minimize([](vt::Tensor x) { return vt::sum(x); }, vt::ones({2}), vt::MinimizeMethod::newton);
}
