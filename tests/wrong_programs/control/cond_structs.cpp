// expect: vt::cond: on_true and on_false return different types
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
};
struct Q {
  vt::Tensor b;
};

int main() {
  vt::cond(
      true, [](vt::Tensor c) { return P{c}; }, [](vt::Tensor c) { return Q{c}; }, vt::tensor(0.0));
}
