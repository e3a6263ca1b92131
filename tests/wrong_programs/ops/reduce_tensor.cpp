// expect: vt::reduce: the function cannot be called with two scalars
#include <vt/vt.hpp>

int main() { (void)vt::reduce(vt::arange(3), 0, vt::arange(3)); }
