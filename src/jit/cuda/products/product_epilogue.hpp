// Epilogues of products: element-wise kernels (bias, activation, residual, …) that run inside the
// product's own kernel.
#pragma once

#include "../../fusion/fused_step.hpp"
#include "product_source.hpp"

namespace vt::detail::cuda {

/// The text of a kernel that attach_element_epilogues has attached. `buffer`: the nest's, that is
/// the product; `columns`: dense_columns of it; `keep`: others read the product, too.
ProductEpilogue product_epilogue(const Nest&, int buffer, std::int64_t columns, bool keep);

}  // namespace vt::detail::cuda
