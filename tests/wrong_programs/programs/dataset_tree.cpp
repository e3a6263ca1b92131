// expect: vt::Dataset: an argument or result is or holds a pointer
#include <vt/vt.hpp>

int main() { vt::Dataset data(std::weak_ptr<int>{}); }
