// expect: vt::tree_leaves: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() { vt::tree_leaves(std::make_shared<int>(1)); }
