// expect: vt::instances: the function cannot be called with these arguments
#include <vt/vt.hpp>

#include <string>
#include <vector>

int main() {
  vt::instances(std::vector<int>{1}, [](const std::string&) { return vt::Tensor(1); });
}
