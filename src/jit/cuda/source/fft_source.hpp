// Fourier transforms as CUDA kernels.
#pragma once

#include <cstdint>
#include <string>

#include <vt/detail/small_vec.hpp>

#include "../../../trace/numerics/fft_kernels.hpp"

namespace vt::detail::cuda {

/// One kernel `name(from, to)` along one axis.
struct FftPass {
  std::string source, name;
  std::int64_t blocks = 0;
  int threads = 0;
  std::int64_t shared_bytes = 0;
  /// What it reads and writes: the operand (−1), the result (−2), or a piece of scratch memory of
  /// its number.
  int from = -1, to = -2;
};

struct FftSource {
  Vec<FftPass> passes;              ///< one after the other
  SmallVec<std::int64_t, 2> bytes;  ///< of the pieces of scratch memory
  std::string refusal;              ///< why there is no kernel; empty if there is one
};

/// Rows go through the Stockham passes in shared memory, several at a time where they are short.
/// Rows that do not fit there are taken as a matrix in two steps (Bailey 1990): then the length
/// must have two factors that do.
FftSource fft_source(const FftSpec&);

/// A kernel `name(x)` that divides the results of a backward transform by the number of elements
/// that it goes over.
FftPass fft_division(const FftSpec&);

}  // namespace vt::detail::cuda
