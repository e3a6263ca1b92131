// expect: vt::grad, vt::value_and_grad: an argument or result is or holds a std::shared_ptr to a
//     class with virtual functions
#include <vt/vt.hpp>
struct Layer {
  virtual ~Layer() = default;
};

int main() {
  vt::grad([](const std::shared_ptr<Layer>&) { return vt::tensor(1.0); })(
      std::make_shared<Layer>());
}
