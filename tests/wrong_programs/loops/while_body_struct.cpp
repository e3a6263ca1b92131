// expect: vt::while_loop: the body returns another type than that of the carry
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
};
struct Q {
  vt::Tensor b;
};

int main() {
  vt::while_loop([](P c) { return c.a < 3; }, [](P c) { return Q{c.a}; }, P{vt::tensor(0.0)});
}
