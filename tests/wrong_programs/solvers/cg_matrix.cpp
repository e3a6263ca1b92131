// expect: vt::cg: the function must take a tree
#include <vt/vt.hpp>

int main() { vt::cg(vt::ones({2, 2}), vt::ones({2})); }
