// expect: is or holds an unordered map
#include <unordered_map>
#include <vt/vt.hpp>
using M = std::unordered_map<std::string, vt::Tensor>;

int main() {
  vt::jit([](const M& m) { return m.at("a"); })(M{});
}
