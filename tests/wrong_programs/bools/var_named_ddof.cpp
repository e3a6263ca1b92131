// expect: no matching
#include <vt/vt.hpp>

// GCC 12 took the name for nothing, and 1 for an axis.
int main() { return vt::var(vt::ones({3, 2}), {.ddof = 1}).rank(); }
