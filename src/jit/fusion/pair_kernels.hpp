// Pairs: two kernels that read the same large array, run in turns on parts of it.
#pragma once

#include "fuse.hpp"

namespace vt::detail {

/// Finds kernels that go through the rows of an array too large for the caches near a core, and
/// others that go through it in the same order later, as Xᵀ f(X·w) does: those are moved behind the
/// first ones and become pairs (see FusedStep::pair_rows), so that the second kernel finds in the
/// cache what the first one has read. No sum changes its order.
void pair_kernels(Fusion&);

}  // namespace vt::detail
