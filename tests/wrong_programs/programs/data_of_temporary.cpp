// expect: data() of a temporary would point to memory that is gone: keep the Tensor in a variable,
//         or call to_vector
#include <vt/vt.hpp>

int main() {
  vt::Tensor u = vt::ones({3});
  auto d = (u + 1.0).data<float>();
}
