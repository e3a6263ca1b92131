// expect: vt::custom_vmap: the rule must return std::pair(result, has_lanes)
#include <vt/vt.hpp>

int main() {
  vt::custom_vmap([](vt::Tensor a) { return a; },
                  [](std::int64_t, std::array<bool, 1>, vt::Tensor a) { return std::pair(a, a); })(
      vt::tensor(1.0));
}
