// expect: vt::make_graph: the function cannot be called
#include <vt/vt.hpp>

int main() {
  vt::make_graph([](vt::Tensor a) { return a; })();
}
