// expect: vt::switch_: the tuple holds no functions
#include <vt/vt.hpp>

int main() { vt::switch_(1, std::tuple(), vt::tensor(0.0)); }
