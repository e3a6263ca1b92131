// The kinds of matrix product kernels that make_matmul chooses from.
#pragma once

#include "llvm_library.hpp"
#include "matmul.hpp"
#include "target.hpp"

namespace vt::detail::cpu {

std::shared_ptr<const Matmul> make_packed_matmul(const MatmulSpec&);
/// How many elements of k its kernel multiplies in one lane at a time: 4 of i8, 2 of bf16, where the CPU can, else 1.
int product_group(const MatmulSpec&, const Target&);

}  // namespace vt::detail::cpu
