// expect: vt::check: values are Tensors, numbers and texts
#include <vt/vt.hpp>

int main() { vt::check(true, "{}", std::pair(1, 2)); }
