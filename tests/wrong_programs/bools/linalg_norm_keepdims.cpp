// expect: a bool given where a number belongs (an axis, a count, a seed, ord or ddof): give the
//         numbers first and true or false in its own place
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  vt::linalg::norm(u, true);
}
