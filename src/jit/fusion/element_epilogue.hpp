// Element epilogues: element-wise kernels (bias, activation, residual, …) that run on each element
// of a product as it is done.
#pragma once

#include <vt/detail/function.hpp>

#include "fuse.hpp"

namespace vt::detail {

/// Makes the kernels that read each element of a product once, where it lies, one step with this
/// product (`row_loop` ≥ 0), if `takes(product)`.
void attach_element_epilogues(Fusion&, FunctionRef<bool(const FusedStep&)> takes);

namespace element_epilogues {
/// At which index the nest reads the buffer; −1: at several, or under a mask.
IndexId read_of(const Nest&, int buffer);
/// All loops of its only stage; others that the nest lists were joined with these.
SmallVec<int, 6> loops_of(const Nest&);
}  // namespace element_epilogues

}  // namespace vt::detail
