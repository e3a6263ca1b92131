// Chains: two matrix products and the kernel between them as one step.
#pragma once

#include <vt/detail/function.hpp>

#include "fuse.hpp"

namespace vt::detail {

/// Finds products with a kernel on their rows (see epilogue.hpp) whose rows only another product
/// takes, as in attention: softmax(q·kᵀ)·v. Where the target `chains` them, the second one joins
/// their step, and what lies between is never in memory as a whole.
void chain_products(Fusion&, FunctionRef<bool(const MatmulSpec&, const MatmulSpec&)> chains);

}  // namespace vt::detail
