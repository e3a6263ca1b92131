// Single regions: neighbouring equations of small values, without lanes, that become one function.
// A program of a few numbers is then one step, not as many as it has kernels.
#pragma once

#include <vt/detail/function.hpp>

#include "../../trace/ir/graph.hpp"
#include "register_kernel.hpp"

namespace vt::detail {

/// The Graph as regions, for all its lanes if it has any, if most of what it computes are zeros
/// that are known (see keeps_zeros) and the rest is small; else as it is.
GraphBody form_sparse_regions(GraphBody graph, const RegisterLimits& limits, std::int64_t frame);
/// The Graph with such regions as equations of their own. `steps_of` tells how many steps a Graph
/// takes otherwise: where regions save few of them for what they compute element by element, the
/// Graph stays as it is. `frame`: bytes of arrays that a region may have.
GraphBody form_single_regions(GraphBody graph, const RegisterLimits& limits, std::int64_t frame,
                              FunctionRef<std::size_t(const GraphBody&)> steps_of);

}  // namespace vt::detail
