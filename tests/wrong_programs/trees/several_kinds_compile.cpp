// compiles
#include <unordered_map>
#include <variant>

#include <vt/vt.hpp>
class Pose {
 public:
  explicit Pose(vt::Tensor r) : r_(r) {}
  vt::Tensor r() const { return r_; }

 private:
  vt::Tensor r_;

 public:
  static constexpr auto tree_members = std::tuple(&Pose::r_);
};
struct All {
  std::variant<int, Pose> pose;
  std::unordered_map<std::string, vt::Tensor> map;
  std::shared_ptr<const vt::Tensor> shared;
  std::vector<bool> bits;
};
template <class T>
concept BecomesATensor = std::is_convertible_v<vt::Tensor, T>;
static_assert(!BecomesATensor<double> && !BecomesATensor<float> && !BecomesATensor<bool> &&
              !BecomesATensor<int> && !BecomesATensor<std::string> &&
              !BecomesATensor<std::vector<double>> && !BecomesATensor<std::array<double, 3>> &&
              !BecomesATensor<std::span<const double>> && !BecomesATensor<const double*> &&
              !BecomesATensor<vt::Shape> && !BecomesATensor<std::vector<vt::Tensor>>);

int main() {
  vt::jit(vt::grad([](const All& a, std::span<const vt::Tensor>) { return a.map.at("a"); }))(
      All(), std::span<const vt::Tensor>());
}
