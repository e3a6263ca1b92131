// What the CPU can do at most: measured once, and kept on disk.
#pragma once

#include "../backend.hpp"

namespace vt::detail::cpu {

/// With all threads that vt uses. Measures for some tenths of a second where nobody has, or `again`, and then keeps the better of both.
MachineLimits machine_limits(bool again);

}  // namespace vt::detail::cpu
