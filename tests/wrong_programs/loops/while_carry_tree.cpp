// expect: vt::while_loop: an argument or result is or holds a set
#include <set>

#include <vt/vt.hpp>
using M = std::set<int>;

int main() {
  vt::while_loop([](const M& m) { return vt::tensor(m.empty()); }, [](M m) { return m; }, M{});
}
