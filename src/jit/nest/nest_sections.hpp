// Sections: parts of a loop inside which conditions on its position are known, as left by padding,
// concatenation and slices of a sum.
#pragma once

#include "loop_nest.hpp"

namespace vt::detail {

/// Where conditions that depend on `loop` alone change, ascending: section k has the iterations
/// from border k to border k + 1, the last one those to the end of the loop. Only what `roots` need
/// counts. Empty where there is nothing to gain: no such condition, or the code of all sections
/// together would be too long. Borders are multiples of `aligned`.
SmallVec<std::int64_t, 16> section_borders(const Nest&, int loop, const Vec<int>& roots,
                                           std::int64_t aligned);

/// The nest as it is where `first` ≤ `loop` < `last` (−1: to its end): known conditions are
/// literals, and what they choose has taken the place of the choice. Values keep their numbers.
Nest section_of(const Nest&, int loop, std::int64_t first, std::int64_t last);

}  // namespace vt::detail
