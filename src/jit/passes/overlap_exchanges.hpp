// Overlap: exchanges between processes run while others compute.
#pragma once

#include "../fusion/fused_step.hpp"

namespace vt::detail {

/// Cuts exchanges (ppermute) in two steps: they begin as soon as what they send is there, and are
/// waited for when nothing else can be done. All processes begin them, and run their other
/// collectives, in the order of the Graph.
void overlap_exchanges(Fusion&);

}  // namespace vt::detail
