// Result stages: what is made of the results of sums over rows, with SIMD lanes of its own.
#pragma once

#include "fuse.hpp"

namespace vt::detail {

/// Kernels that sum along rows, SIMD lanes going along each row, and then compute much from each
/// sum, as σ(X·w): the sums of a block of rows go to a small array, and a second stage works on
/// that, SIMD lanes going from row to row. No bit changes.
void give_results_stages(Fusion&, int vector_bytes);

}  // namespace vt::detail
