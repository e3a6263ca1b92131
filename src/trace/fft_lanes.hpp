// Fourier transforms of one length for several rows at once, a row to a lane of a vector: plans, and the kernel that runs them.
#pragma once

#include <cstdint>

#include <vt/small_vec.hpp>

namespace vt::detail::fft {

/// Rows that go side by side: what fills 32 bytes.
template <class R>
inline constexpr int lanes = static_cast<int>(32 / sizeof(R));

/// One pass of a Stockham transform: `radix` parts of length `part`, interleaved by `stride`.
struct Pass {
  int radix = 2;
  std::int64_t part = 1, stride = 1;
  std::size_t twiddles = 0;  ///< where its factors begin: (radix − 1) complex ones for each place in a part; then an odd radix's own roots
};
/// A transform whose length has no prime factor above largest_prime.
template <class R>
struct LanePlan {
  std::int64_t n = 1;
  Vec<Pass> passes;
  Vec<R> twiddles;
};
inline constexpr int largest_prime = 13;

/// exp(−2πi · k / n), 0 ≤ k < n, to long double's accuracy.
struct Root {
  long double re, im;
};
Root root_of_unity(std::int64_t k, std::int64_t n);
/// Factors: eights, fours or a two, and primes up to largest_prime; `rest`: what is left.
Vec<int> radices_of(std::int64_t n, std::int64_t* rest);
template <class R>
LanePlan<R> make_lane_plan(std::int64_t n);

/// Up to lanes<R> rows. Distances are in complex numbers. The transform is the forward one, unscaled; with parts swapped on both
/// sides it is the backward one.
template <class R>
struct LaneJob {
  const R* in = nullptr;
  R* out = nullptr;
  std::int64_t in_step = 1, in_row = 0, out_step = 1, out_row = 0;
  int rows = 0;
  bool swap_in = false, swap_out = false;
  R scale = 1;
  /// Not null: element k of row l is also multiplied by between[k] · along[k · lanes + l].
  const R *between = nullptr, *along = nullptr;
};

/// `work`: memory for 4 · n · lanes numbers, at a multiple of 32 bytes. In and out may be the same.
template <class R>
void run_lanes(const LanePlan<R>&, const LaneJob<R>&, R* work);

}  // namespace vt::detail::fft
