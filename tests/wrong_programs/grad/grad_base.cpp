// expect: struct with a base class
#include <vt/vt.hpp>
struct Base {
  vt::Tensor a;
};
struct P : Base {
  vt::Tensor b;
};

int main() {
  vt::grad([](P p) { return sum(p.b); })(P{});
}
