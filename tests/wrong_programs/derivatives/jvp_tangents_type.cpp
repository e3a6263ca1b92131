// expect: vt::jvp: the tangents must be trees like the primals
#include <vt/vt.hpp>
struct P {
  vt::Tensor a;
};

int main() {
  vt::jvp([](P p) { return p.a; }, P{vt::tensor(1.0)}, std::string("a"));
}
