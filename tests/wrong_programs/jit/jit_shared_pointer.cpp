// expect: vt::jit: an argument or result is or holds a pointer
#include <vt/vt.hpp>
struct P {
  std::shared_ptr<vt::Tensor> w;
};

int main() {
  vt::jit([](P p) { return *p.w; })(P{});
}
