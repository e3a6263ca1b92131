// Linked with -static: loads no library, runs on the interpreter, and says so.
#include <cstdio>

#include <vt/vt.hpp>

int main() {
  const auto f = vt::jit([](const vt::Tensor& x) { return vt::sum(x * x); });
  for (int k = 0; k < 3; ++k)
    if (f(vt::arange(5.0)).item<double>() != 30) return 1;
  const std::string said = vt::warnings();
  std::printf("%s", said.c_str());
  return said.find("linked with -static") == std::string::npos;
}
