// expect: vt::select takes lists, as NumPy's: vt::select({c1, c2}, {x1, x2}, otherwise); of one
//         condition take vt::where(condition, if_true, if_false)
#include <vt/vt.hpp>

int main() {
  vt::Tensor x = vt::ones({3});
  vt::Tensor y = vt::select(x > 0.5, x, -x);
}
