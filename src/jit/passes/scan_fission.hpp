// Work that need not be done iteration by iteration: products of a scan's sequences move in front
// of it, as one product for all iterations; sums over the iterations of products move behind it.
#pragma once

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// The same function. Loops that fit into registers, with so many bytes of arrays in the function's
/// frame, are left alone.
GraphBody move_out_of_scans(const GraphBody&, std::int64_t frame);

}  // namespace vt::detail
