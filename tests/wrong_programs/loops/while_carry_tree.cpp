// expect: vt::while_loop: an argument or result is or holds an unordered map
#include <unordered_map>

#include <vt/vt.hpp>
using M = std::unordered_map<std::string, vt::Tensor>;

int main() {
  vt::while_loop([](const M& m) { return m.at("a") < 3; }, [](M m) { return m; }, M{});
}
