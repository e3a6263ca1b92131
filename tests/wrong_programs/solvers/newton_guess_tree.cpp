// expect: vt::newton: an argument or result is or holds an unordered map
#include <unordered_map>

#include <vt/vt.hpp>
using M = std::unordered_map<std::string, vt::Tensor>;

int main() {
  vt::newton([](const M& m) { return m; }, M{});
}
