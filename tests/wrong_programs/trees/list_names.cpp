// expect: vt::TreeMembers::names, if there, has a name for each
#include <vt/vt.hpp>
struct Pose {
  explicit Pose(vt::Tensor x) : r(x), t(x) {}
  vt::Tensor r, t;
};
template <>
struct vt::TreeMembers<Pose> {
  static auto of(auto& p) { return std::tie(p.r, p.t); }
  static constexpr std::array names{"r"};
};

int main() {
  vt::jit([](const Pose&) { return vt::tensor(1.0); })(Pose(vt::tensor(1.0)));
}
