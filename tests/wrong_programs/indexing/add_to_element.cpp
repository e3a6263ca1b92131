// expect: += on a temporary changes nothing: write x = vt::at(x, index).add(value), or
//         .set, .mul, .min, .max
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  u[0] += 1.0;
}
