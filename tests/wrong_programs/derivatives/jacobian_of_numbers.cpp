// expect: an argument to differentiate by holds no vt::Tensor
#include <vt/vt.hpp>
struct P {
  double a, b;
};

int main() {
  vt::jacobian([](P p) { return vt::tensor({p.a, p.b}); })(P{1, 2});
}
