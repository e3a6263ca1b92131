// Compiled as C++23, where x[i, j] is x(i, j); the library is C++20.
#include <cstdio>

#include <vt/vt.hpp>

int main() {
#ifdef __cpp_multidimensional_subscript
  const vt::Tensor x = vt::arange(24).reshape({2, 3, 4}), t = vt::tensor({1, 0});
  const auto same = [](const vt::Tensor& a, const vt::Tensor& b) {
    return a.shape() == b.shape() && vt::all(a == b).item<bool>();
  };
  const bool right = x[1, 2, 3].item<int>() == 23 &&
                     same(x[t, vt::slice(), t], x(t, vt::slice(), t)) &&
                     same(x[vt::ellipsis, vt::newaxis, 0], x(vt::ellipsis, vt::newaxis, 0)) &&
                     same(x[0, vt::window(t[0], 2)], x(0, vt::slice(1, 3))) && same(x[t], x(t));
  if (!right) std::puts("x[i, j] is not x(i, j)");
  return right ? 0 : 1;
#else
  return 0;
#endif
}
