// Removes complex numbers from a Graph before fusion: each becomes its real and its imaginary part.
#pragma once

#include <optional>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Does a value of the Graph, or of one inside it, hold complex numbers?
bool has_complex(const GraphBody&);

/// The same function in real numbers. Where inputs and outputs were complex they are real with one
/// more axis of extent 2, the last: the same bytes. None if it has an op that only the interpreter
/// knows for complex numbers.
std::optional<GraphBody> lower_complex(const GraphBody&);

}  // namespace vt::detail
