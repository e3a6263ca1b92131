// compiles
#include <vt/vt.hpp>

namespace {
struct Inner {
  vt::Tensor a;
  const int n;
};
}  // namespace
struct Empty {};
struct Outer {
  std::optional<vt::Tensor> first;
  Inner inner;
  Empty none;
  std::vector<Inner> more;
  std::map<std::string, vt::Tensor> named;
  double rate;
};

int main() {
  struct Local {
    vt::Tensor x;
    Outer outer;
  };
  vt::jit([](const Local& p) { return p.x; })(
      Local{vt::tensor(1.0), {std::nullopt, {vt::tensor(1.0), 1}, {}, {}, {}, 1.0}});
  vt::grad([](Outer p) { return p.inner.a; });
}
