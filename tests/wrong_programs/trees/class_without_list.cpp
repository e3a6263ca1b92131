// expect: template <> struct vt::TreeMembers<Name> { static auto of(auto& x) { return
//     std::tie(x.a, x.b); } };
// expect: Pose
#include <vt/vt.hpp>
class Pose {
 public:
  explicit Pose(vt::Tensor r) : r_(r) {}

 private:
  vt::Tensor r_;
};

int main() {
  vt::vmap([](const Pose&) { return vt::tensor(1.0); })(Pose(vt::tensor(1.0)));
}
