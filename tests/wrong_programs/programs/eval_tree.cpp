// expect: vt::eval: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() { vt::eval(std::weak_ptr<int>()); }
