// Moves work out of scans: a product with a sequence moves in front, as one product for all
// iterations; a sum over iterations of products moves behind.
#pragma once

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// The same function. Loops that fit into registers, with so many bytes of arrays in the function's
/// frame, are left alone.
GraphBody move_out_of_scans(const GraphBody&, std::int64_t frame);

}  // namespace vt::detail
