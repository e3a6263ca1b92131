// Fourier transforms in memory: what an fft equation computes.
#pragma once

#include <cstdint>

#include "../ir/graph.hpp"

namespace vt::detail {

/// Transforms of the last axes of row-major arrays [batch, lengths…].
struct FftSpec {
  FftKind kind = FftKind::fft;
  DType part = DType::f64;  ///< f32 or f64: of the parts of the complex numbers
  std::int64_t batch = 0;
  /// of the transforms: those of the real array of rfft and irfft
  SmallVec<std::int64_t, 3> lengths;
  std::int64_t operations() const;  ///< about how many, in all
};
FftSpec fft_spec(const FftParams&, const Aval& operand);

/// How to run independent iterations: body(context, begin, end) on ranges that cover [0, total).
using FftRanges = void (*)(std::int64_t total,
                           void (*body)(void* context, std::int64_t begin, std::int64_t end),
                           void* context);

/// fft and rfft are unscaled, ifft and irfft divide by the number of elements. `in` and `out` do
/// not overlap. What comes out does not depend on the ranges. Any length: factors up to 13
/// directly, larger primes as convolutions (Bluestein).
/// Throws: Error if there is no memory to work in.
void run_fft(const FftSpec&, const void* in, void* out, FftRanges);
/// Bytes that it takes at most beside `in` and `out` where so many ranges run at a time; tables of
/// roots, which are kept, do not count.
std::size_t fft_scratch_bytes(const FftSpec&, std::int64_t threads);

}  // namespace vt::detail
