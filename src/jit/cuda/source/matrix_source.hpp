// Linear algebra on batches of small matrices as CUDA kernels.
#pragma once

#include <cstdint>
#include <string>

#include "../../../trace/numerics/linalg_kernels.hpp"

namespace vt::detail::cuda {

struct MatrixSource {
  /// a kernel `name(operands…, results…)`; results that are null are not written
  std::string source, name;
  std::int64_t blocks = 0;
  int threads = 0;
  std::int64_t shared_bytes = 0;
  std::string way;         ///< "a warp per matrix", for explain
  std::string refusal;     ///< why there is no kernel; empty if there is one
  bool too_large = false;  ///< that is the reason
};

/// A thread, a warp or a block for each matrix of real numbers, by its size; what it works on lies
/// in registers and shared memory. Factors and systems are computed in the operands' dtype,
/// orthogonal ones and spectra in f64, rounded once at the end. The algorithms and signs are those
/// of linalg_factors.hpp; spectra by Jacobi's rotations, as many at a time as there are pairs of
/// columns that do not meet.
MatrixSource matrix_source(const LinalgSpec&);

}  // namespace vt::detail::cuda
