// compiles
#include <vt/vt.hpp>

#pragma GCC diagnostic warning "-Wunused-result"

vt::Tensor doubled(vt::Tensor x) {
  vt::debug_print("{}", x);
  return x * 2.0;
}

int main() {
  vt::Tensor x = vt::ones({3});
  x.eval();
  doubled(x).eval();
  vt::eval(x, x + 1.0);
  vt::jit(doubled)(x);
  vt::vmap(doubled)(x);
  vt::grad([](vt::Tensor t) { return vt::sum(doubled(t)); })(x);
  vt::pfor([&](vt::Tensor i) { return x[i]; }, 3);
  vt::cond(x[0] > 0.0, doubled, doubled, x);
  vt::fori_loop(0, 3, [](vt::Tensor, vt::Tensor t) { return doubled(t); }, x);
  x += 1.0;
}
