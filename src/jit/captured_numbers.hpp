// Small arrays that a jitted function captured, as numbers in its code.
#pragma once

#include <vt/detail/small_vec.hpp>

#include "../trace/ir/graph.hpp"

namespace vt::detail {

/// `graph`, whose last inputs are the `captured` values, all on the host: small ones become
/// constants, which are computed with when code is made, and leave the list. That goes for the
/// first values that a function is compiled with: where it is jitted again with others, as in a
/// loop, the code reads them from memory from then on and need not be made again for each.
GraphBody with_captured_numbers(const GraphBody& graph, Vec<BufferRef>& captured);

}  // namespace vt::detail
