// expect: vt::bicgstab: the function must take a tree
#include <vt/vt.hpp>

int main() { vt::bicgstab(vt::ones({2, 2}), vt::ones({2})); }
