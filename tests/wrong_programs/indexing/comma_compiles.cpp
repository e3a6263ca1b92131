// compiles
#include <vt/vt.hpp>

// Elsewhere than between brackets a comma keeps its meaning.
vt::Tensor last(const vt::Tensor& a, const vt::Tensor& b) { return (vt::eval(a), b); }
template <class... T>
vt::Tensor last_of(T... t) {
  vt::Tensor result;
  ((result = vt::sin(t)), ...);
  return result;
}

int main() {
  vt::Tensor a = vt::ones({3, 3}), b = vt::zeros({3});
  for (int i = 0; i < 3; a = a + b, ++i) b = a[i], a = a(vt::slice(), i) * b;
  last_of(last(a, b), b);
}
