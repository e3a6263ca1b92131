// expect: vt::tree_leaves: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() { vt::tree_leaves(std::weak_ptr<int>()); }
