// Fourier transforms of one length for several rows at once, one row per SIMD lane: plans, and the
// kernel that runs them.
#pragma once

#include <algorithm>
#include <cstdint>

#include <vt/detail/small_vec.hpp>

namespace vt::detail::fft {

/// Rows that go side by side: what fills 32 bytes.
template <class R>
inline constexpr int simd_lanes = static_cast<int>(32 / sizeof(R));

/// One pass of a Stockham transform: `radix` parts of length `part`, interleaved by `stride`.
struct Pass {
  int radix = 2;
  std::int64_t part = 1, stride = 1;
  /// where its factors begin: (radix − 1) complex ones for each place in a part; then an odd
  /// radix's own roots
  std::size_t twiddles = 0;
};
/// A transform whose length has no prime factor above largest_prime.
template <class R>
struct SimdPlan {
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
SimdPlan<R> make_simd_plan(std::int64_t n);

/// Up to SIMD lanes<R> rows. Distances are in complex numbers. The transform is the forward one,
/// unscaled; with parts swapped on both sides it is the backward one.
template <class R>
struct SimdJob {
  const R* in = nullptr;
  R* out = nullptr;
  std::int64_t in_step = 1, in_row = 0, out_step = 1, out_row = 0;
  int rows = 0;
  bool swap_in = false, swap_out = false;
  R scale = 1;
  /// Not null: rows of 2 n real numbers, there (n + 1 come out) or, where swap_out is set, back.
  const R* turns = nullptr;
  /// Not null: element k of row l is also multiplied by between[k] · along[k · SIMD lanes + l].
  const R *between = nullptr, *along = nullptr;
};

/// Real rows of even length n: as complex numbers of h = n / 2 pairs they give Z, of which the two
/// spectra are the parts that are even and odd in frequency.
/// X[k] = (Z[k] + Z*[h − k]) / 2 − i·w^k·(Z[k] − Z*[h − k]) / 2 with w = exp(−2πi / n), for k up to
/// h / 2 in `w`. x has h + 1 numbers; x and z may be the same. Of k from `begin` to
/// `end` ≤ h / 2 + 1 and the h − k.
template <class N, class R>
inline __attribute__((always_inline)) void join_spectra(const N* z, N* x, std::int64_t h,
                                                        const R* w, std::int64_t begin,
                                                        std::int64_t end) {
  constexpr R half = R(0.5);
  if (begin == 0) {
    const N first = z[0];
    const decltype(first.re) zero{};
    x[0] = {first.re + first.im, zero};
    x[h] = {first.re - first.im, zero};
  }
  for (std::int64_t k = std::max<std::int64_t>(begin, 1); k < end; ++k) {
    const N a = z[k], b = z[h - k];
    const auto er = half * (a.re + b.re), ei = half * (a.im - b.im), dr = half * (a.re - b.re),
               di = half * (a.im + b.im);
    // −i·w^k·d
    const auto tr = dr * w[2 * k + 1] + di * w[2 * k], ti = di * w[2 * k + 1] - dr * w[2 * k];
    x[k] = {er + tr, ei + ti};
    x[h - k] = {er - tr, ti - ei};
  }
}
/// The step back, without the factor 1/2; `swapped`: with re and im exchanged in z.
template <bool swapped, class N, class R>
inline __attribute__((always_inline)) void part_spectra(const N* x, N* z, std::int64_t h,
                                                        const R* w, std::int64_t begin,
                                                        std::int64_t end) {
  if (begin == 0) {
    // the imaginary parts of the first and the last one count for nothing
    const auto low = x[0].re, high = x[h].re;
    z[0] = swapped ? N{low - high, low + high} : N{low + high, low - high};
  }
  for (std::int64_t k = std::max<std::int64_t>(begin, 1); k < end; ++k) {
    const N a = x[k], b = x[h - k];
    const auto er = a.re + b.re, ei = a.im - b.im, dr = a.re - b.re, di = a.im + b.im;
    // i·w^−k·d
    const auto tr = dr * w[2 * k + 1] - di * w[2 * k], ti = di * w[2 * k + 1] + dr * w[2 * k];
    z[k] = swapped ? N{ei + ti, er + tr} : N{er + tr, ei + ti};
    z[h - k] = swapped ? N{ti - ei, er - tr} : N{er - tr, ti - ei};
  }
}

/// `work`: memory for (4 n + 2) · SIMD lanes numbers, at a multiple of 32 bytes. In and out may be
/// the same.
template <class R>
void run_simd_lanes(const SimdPlan<R>&, const SimdJob<R>&, R* work);

}  // namespace vt::detail::fft
