// Matrix products on the CPU: which kernel a product uses, how it is blocked and shared among
// threads.
#pragma once

#include <memory>

#include "../../fusion/matmul_spec.hpp"

namespace vt::detail::cpu {

using Matmul = ProductKernel;

/// The kernel for `spec`, compiled or from a cache (in a `hurry`: see cached_code). Null when there
/// is no LLVM.
std::shared_ptr<const Matmul> make_matmul(const MatmulSpec& spec, bool hurry = false);

/// Are the rows between two products so many, and of such products, that both run as one? The same
/// on every number of threads.
bool chains(const MatmulSpec& first, const MatmulSpec& second);
/// Of two that `chains`.
std::shared_ptr<const ProductChain> make_chain(const MatmulSpec& first, const MatmulSpec& second);

}  // namespace vt::detail::cpu
