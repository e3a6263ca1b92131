// Merges two neighbouring axes that no equation tells apart, as the rows and columns of an image
// for work on each pixel.
#pragma once

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Makes axes `first` and `first` + 1 of `v`, and those that run in step with them, one axis in all
/// equations that treat them alike; between these and the others come reshapes, which move nothing.
/// Returns what `v` is then; −1, with the Graph as it was, where no equation would take it so.
Var merge_axes(GraphBody& graph, Var v, int first);

}  // namespace vt::detail
