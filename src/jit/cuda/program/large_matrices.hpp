// Linear algebra on matrices too large for a block's shared memory: routines of cuSOLVER and
// cuBLAS, and vt's kernels around them.
#pragma once

#include <vt/detail/function.hpp>

#include "../../../trace/numerics/linalg_kernels.hpp"
#include "../libraries/blas_library.hpp"
#include "../libraries/solver_library.hpp"
#include "launch.hpp"

namespace vt::detail::cuda {

/// Who makes the libraries' calls; each says why where it does not.
struct MatrixLibraries {
  FunctionRef<SolverCall(const SolverTask&, std::string* reason)> solver;
  FunctionRef<std::shared_ptr<const LibraryCall>(const TriangleSpec&, std::string* reason)>
      triangle;
};

/// Adds launches that compute a LinalgSpec of real matrices, in their own dtype, with the
/// interpreter's signs and its NaN for what has no decomposition. `operands` and `results`: memory
/// in the equation's order, results that nobody wants at addresses of null. Empty, or why not (a
/// library is missing, or another op); then nothing is added.
std::string add_large_matrices(const LinalgSpec&, const SmallVec<Launch::Pointer, 8>& operands,
                               const SmallVec<Launch::Pointer, 8>& results, const MatrixLibraries&,
                               ScratchLayout&, Vec<Launch>&);

}  // namespace vt::detail::cuda
