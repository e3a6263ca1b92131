// Derivatives of calls: each derivative of a called function is made once, as a function that is
// called in its turn.
#pragma once

#include <span>
#include <vector>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// Runs a call of a linear Graph. `x`: its operands; of those with `linear` undefined ones are
/// zeros, as undefined results are.
std::vector<Tensor> push_call(const Equation&, std::span<const Tensor> x, const Vec<bool>& linear);

}  // namespace vt::detail
