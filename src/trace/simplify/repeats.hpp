// Equations that compute the same, without any other simplification.
#pragma once

#include "../ir/graph.hpp"

namespace vt::detail {

/// The same Graph, in which what several equal equations compute is computed by the first of them.
/// Derivatives of each would be computed apart, which no later pass could put together again.
GraphBody without_repeats(GraphBody);

}  // namespace vt::detail
