// Costs of machine operations for the cost model: measured by the background thread and kept on
// disk.
#pragma once

#include "runtime/compiler.hpp"

namespace vt::detail::cpu {

/// Measures now, on this thread; not bounded.
MachineCosts measured_costs();

}  // namespace vt::detail::cpu
