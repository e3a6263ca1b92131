// Combining: the loops that add the elements of two ranks, or take the greater or lesser ones.
#pragma once

#include <cstddef>

#include <vt/dtype.hpp>

#include "world.hpp"

namespace vt::detail {

/// result[i] = lower[i] ∘ higher[i]; result may be one of the two. Ranks that call it with the same
/// operands get the same bits, also of NaN.
using CombineLoop = void (*)(void* result, const void* lower, const void* higher, std::size_t n);

/// The dtype that sums are computed in: f32 for f16 and bf16, else the dtype itself.
DType combined_dtype(DType);
/// Of combined_dtype(dtype). bool: a sum is true where one of the operands is.
/// Null: complex numbers have neither max nor min.
CombineLoop combine_loop(RankReduction, DType);

/// Between a 16-bit float dtype and f32; rounds once.
void widen_halves(DType, const void* halves, float* wide, std::size_t n);
void round_to_halves(DType, const float* wide, void* halves, std::size_t n);

}  // namespace vt::detail
