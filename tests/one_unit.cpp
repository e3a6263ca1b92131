// vt's sources as header-only users compile them: all in one unit.
#define VT_IMPLEMENTATION
#include <vt/vt.hpp>
