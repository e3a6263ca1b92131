// The file of a header-only program that holds the implementation.
#define VT_IMPLEMENTATION
#include <vt/vt.hpp>
