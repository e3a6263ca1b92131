// Two axes as one where no equation tells them apart: the rows of an image and its columns, for what is done to each pixel.
#pragma once

#include <optional>

#include "../trace/graph.hpp"

namespace vt::detail {

/// The Graph with axes `first` and `first` + 1 of `v`, and those that run in step with them, as one axis in all equations that treat them alike;
/// between these and the others come reshapes, which move nothing. None where no equation would take `v` so.
struct MergedAxes {
  GraphBody graph;
  Var value;  ///< `v` there
};
std::optional<MergedAxes> merge_axes(const GraphBody& graph, Var v, int first);

}  // namespace vt::detail
