// expect: vt::debug_print: values are Tensors, numbers and texts
#include <vt/vt.hpp>

int main() { vt::debug_print("{}", std::vector<double>{1, 2}); }
