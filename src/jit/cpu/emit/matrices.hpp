// Small matrices as LLVM code: one per SIMD lane, or few of them one at a time.
#pragma once

#include <string>

#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../llvm/ir_builder.hpp"

namespace vt::detail::cpu {

/// How many matrices are worked on side by side; 0: these shapes have no such code.
int matrix_lanes(const LinalgSpec&, const Target&);

#if VT_HAS_LLVM_HEADERS
/// What of the spec the code depends on.
std::string matrices_key(const LinalgSpec&, int simd_lanes);
/// Emits `void name(buffers, -, begin, end)`: the matrices begin … end − 1, a multiple of the
/// SIMD lanes. Buffers: operands, results, and a bool for each of these matrices, which becomes
/// true where they are so near overflow or underflow, or not finite, that run_linalg has to make
/// their results.
void emit_matrices(IrBuilder&, const std::string& name, const LinalgSpec&);
#endif

}  // namespace vt::detail::cpu
