// expect: vt::autobatch: the function cannot be called with these arguments
#include <vt/vt.hpp>

#include <vector>

int main() {
  vt::autobatch([](const vt::Tensor& x) { return x; })(vt::tensor(1.0), std::vector<int>{2});
}
