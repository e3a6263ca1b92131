// expect: vt::newton: an argument or result is or holds a set
#include <set>

#include <vt/vt.hpp>
using M = std::set<int>;

int main() {
  vt::newton([](const M& m) { return m; }, M{});
}
