// Epilogues of products: element-wise kernels (bias, activation, residual, …) that run inside the
// product's own kernel.
#pragma once

#include "../../fusion/fuse.hpp"
#include "product_source.hpp"

namespace vt::detail::cuda {

/// Makes the kernels that read each element of a product once, where it lies, steps with this
/// product (`row_loop` ≥ 0), if `takes(equation)`: its kernel is one of vt's own.
void attach_element_epilogues(Fusion&, FunctionRef<bool(const Equation&)> takes);

/// The text of such a kernel. `buffer`: the nest's, that is the product; `columns`: dense_columns
/// of it; `keep`: others read the product, too.
ProductEpilogue product_epilogue(const Nest&, int buffer, std::int64_t columns, bool keep);

}  // namespace vt::detail::cuda
