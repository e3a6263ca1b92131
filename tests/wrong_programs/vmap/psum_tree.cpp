// expect: vt::psum and the other collectives: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() { vt::psum(std::weak_ptr<int>(), "b"); }
