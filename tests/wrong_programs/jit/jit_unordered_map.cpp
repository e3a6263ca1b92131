// expect: is or holds an unordered map
#include <vt/vt.hpp>
#include <unordered_map>
using M = std::unordered_map<std::string, vt::Tensor>;

int main() {
  vt::jit([](const M& m) { return m.at("a"); })(M{});
}
