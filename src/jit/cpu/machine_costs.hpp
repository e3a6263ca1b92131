// Costs of machine operations for the cost model: measured by the background thread and kept on
// disk.
#pragma once

#include "../nest/cost_model.hpp"

namespace vt::detail::cpu {

/// Those on disk, else the usual numbers. Those of a process change at most once, when they have
/// been measured.
MachineCosts machine_costs();
/// Has them measured in the first few processes (the best of each number counts), which takes some
/// hundredths of a second on the background thread; the caller does not wait. Not done where
/// nothing could be kept (no cache on disk), with VT_TIERS=off (no background thread) or
/// VT_MACHINE=usual.
void measure_machine_costs();
/// Measures now, on this thread; not bounded.
MachineCosts measured_costs();

}  // namespace vt::detail::cpu
