// expect: the function must return one scalar vt::Tensor
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
};

int main() {
  vt::grad([](vt::Tensor a) { return P{a}; })(vt::tensor(1.0));
}
