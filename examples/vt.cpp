// vt's implementation for a prototype: compiled once, and linked to files that only include vt.
#define VT_IMPLEMENTATION
#include <vt/vt.hpp>
