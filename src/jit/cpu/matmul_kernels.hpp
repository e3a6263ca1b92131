// The kinds of matrix product kernels that make_matmul chooses from.
#pragma once

#include "llvm_library.hpp"
#include "matmul.hpp"

namespace vt::detail::cpu {

std::shared_ptr<const Matmul> make_packed_matmul(const MatmulSpec&);

}  // namespace vt::detail::cpu
