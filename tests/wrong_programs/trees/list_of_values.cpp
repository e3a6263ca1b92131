// expect: vt::jit: the list of an argument's or result's members must be std::tie(...) of them
#include <vt/vt.hpp>
class Pose {
 public:
  explicit Pose(vt::Tensor r) : r_(r) {}
  auto tree_members() { return std::tuple(r_); }

 private:
  vt::Tensor r_;
};

int main() {
  vt::jit([](const Pose&) { return vt::tensor(1.0); })(Pose(vt::tensor(1.0)));
}
