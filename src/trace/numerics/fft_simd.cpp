// The Stockham passes of Fourier transforms, on vectors that hold one element of several rows each.
// Passes as in C. Van Loan, "Computational Frameworks for the Fast Fourier Transform" (1992),
// section 1.7.
#include "fft_simd.hpp"

#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../base/machine_level.hpp"

#if defined(__x86_64__)
#define VT_FFT_AVX2 __attribute__((target("avx2,fma")))
#endif
#define VT_FFT_INLINE inline __attribute__((always_inline))

namespace vt::detail::fft {

Root root_of_unity(std::int64_t k, std::int64_t n) {
  // By symmetry from an angle of at most π/4.
  const std::int64_t eighth = 8 * k / n;
  const auto angle = [n](std::int64_t numerator) {  // 2π · numerator / (8n)
    return std::numbers::pi_v<long double> * static_cast<long double>(numerator) /
           (4.0L * static_cast<long double>(n));
  };
  const std::int64_t at = 8 * k;
  const auto cosine = [&](std::int64_t numerator) { return std::cos(angle(numerator)); };
  const auto sine = [&](std::int64_t numerator) { return std::sin(angle(numerator)); };
  switch (eighth) {
    case 0: return {cosine(at), -sine(at)};
    case 1: return {sine(2 * n - at), -cosine(2 * n - at)};
    case 2: return {-sine(at - 2 * n), -cosine(at - 2 * n)};
    case 3: return {-cosine(4 * n - at), -sine(4 * n - at)};
    case 4: return {-cosine(at - 4 * n), sine(at - 4 * n)};
    case 5: return {-sine(6 * n - at), cosine(6 * n - at)};
    case 6: return {sine(at - 6 * n), cosine(at - 6 * n)};
    default: return {cosine(8 * n - at), sine(8 * n - at)};
  }
}

Vec<int> radices_of(std::int64_t n, std::int64_t* rest) {
  Vec<int> radices;
  int twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (; twos >= 3 && twos != 4; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos) radices.push_back(2);
  for (int r : {3, 5, 7, 11, 13})
    for (; n % r == 0; n /= r) radices.push_back(r);
  *rest = n;
  return radices;
}

template <class R>
SimdPlan<R> make_simd_plan(std::int64_t n) {
  SimdPlan<R> plan;
  plan.n = n;
  std::int64_t rest = 1, length = n, stride = 1;
  for (int radix : radices_of(n, &rest)) {
    const Pass pass{radix, length / radix, stride, plan.twiddles.size()};
    for (std::int64_t p = 0; p < pass.part; ++p)
      for (int k = 1; k < radix; ++k) {
        const Root w = root_of_unity(p * k, length);
        plan.twiddles.push_back(static_cast<R>(w.re));
        plan.twiddles.push_back(static_cast<R>(w.im));
      }
    for (int k = 1; radix % 2 == 1 && k <= radix / 2; ++k)
      for (int j = 1; j <= radix / 2; ++j) {
        const Root w = root_of_unity(k * j % radix, radix);
        plan.twiddles.push_back(static_cast<R>(w.re));
        plan.twiddles.push_back(static_cast<R>(w.im));
      }
    plan.passes.push_back(pass);
    length = pass.part;
    stride *= radix;
  }
  return plan;
}
template SimdPlan<float> make_simd_plan(std::int64_t);
template SimdPlan<double> make_simd_plan(std::int64_t);

namespace simd_kernel {

template <class R>
struct VectorOf;
template <>
struct VectorOf<float> {
  typedef float type __attribute__((vector_size(32), may_alias));
};
template <>
struct VectorOf<double> {
  typedef double type __attribute__((vector_size(32), may_alias));
};

/// An element of all rows.
template <class R>
struct Number {
  typename VectorOf<R>::type re, im;
};

template <class R>
VT_FFT_INLINE void multiply(Number<R>& x, const R* w) {
  const auto re = x.re * w[0] - x.im * w[1];
  x.im = x.re * w[1] + x.im * w[0];
  x.re = re;
}

/// The transform of four numbers, in place.
template <class R>
VT_FFT_INLINE void transform_4(Number<R>& a, Number<R>& b, Number<R>& c, Number<R>& d) {
  const Number<R> s{a.re + c.re, a.im + c.im}, t{a.re - c.re, a.im - c.im},
      u{b.re + d.re, b.im + d.im};
  const Number<R> v{b.im - d.im, d.re - b.re};  // −i · (b − d)
  a = {s.re + u.re, s.im + u.im};
  b = {t.re + v.re, t.im + v.im};
  c = {s.re - u.re, s.im - u.im};
  d = {t.re - v.re, t.im - v.im};
}

template <class R>
VT_FFT_INLINE void pass_of_8(const Pass& pass, const R* twiddles, const Number<R>* in,
                             Number<R>* out) {
  constexpr R root = static_cast<R>(std::numbers::sqrt2_v<long double> / 2);
  const std::int64_t s = pass.stride, apart = pass.part * s;
  for (std::int64_t p = 0; p < pass.part; ++p) {
    const R* w = twiddles + 14 * p;
    const Number<R>* x = in + p * s;
    Number<R>* y = out + 8 * p * s;
    for (std::int64_t q = 0; q < s; ++q, ++x, ++y) {
      Number<R> even[4], odd[4];
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) {
        const Number<R>&a = x[j * apart], &b = x[(j + 4) * apart];
        even[j] = {a.re + b.re, a.im + b.im};
        odd[j] = {a.re - b.re, a.im - b.im};
      }
      transform_4<R>(even[0], even[1], even[2], even[3]);
      // Times exp(−2πi · j / 8).
      odd[1] = {root * (odd[1].re + odd[1].im), root * (odd[1].im - odd[1].re)};
      odd[2] = {odd[2].im, -odd[2].re};
      odd[3] = {root * (odd[3].im - odd[3].re), -root * (odd[3].re + odd[3].im)};
      transform_4<R>(odd[0], odd[1], odd[2], odd[3]);
      y[0] = even[0];
#pragma GCC unroll 8
      for (int k = 1; k < 8; ++k) {
        Number<R> z = k % 2 ? odd[k / 2] : even[k / 2];
        if (p != 0) multiply(z, w + 2 * (k - 1));
        y[k * s] = z;
      }
    }
  }
}

template <class R>
VT_FFT_INLINE void pass_of_4(const Pass& pass, const R* twiddles, const Number<R>* in,
                             Number<R>* out) {
  const std::int64_t s = pass.stride, apart = pass.part * s;
  for (std::int64_t p = 0; p < pass.part; ++p) {
    const R* w = twiddles + 6 * p;
    const Number<R>* x = in + p * s;
    Number<R>* y = out + 4 * p * s;
    for (std::int64_t q = 0; q < s; ++q, ++x, ++y) {
      Number<R> y0 = x[0], y1 = x[apart], y2 = x[2 * apart], y3 = x[3 * apart];
      transform_4<R>(y0, y1, y2, y3);
      y[0] = y0;
      if (p != 0) {
        multiply(y1, w);
        multiply(y2, w + 2);
        multiply(y3, w + 4);
      }
      y[s] = y1;
      y[2 * s] = y2;
      y[3 * s] = y3;
    }
  }
}

template <class R>
VT_FFT_INLINE void pass_of_2(const Pass& pass, const R* twiddles, const Number<R>* in,
                             Number<R>* out) {
  const std::int64_t s = pass.stride, apart = pass.part * s;
  for (std::int64_t p = 0; p < pass.part; ++p) {
    const Number<R>* x = in + p * s;
    Number<R>* y = out + 2 * p * s;
    for (std::int64_t q = 0; q < s; ++q, ++x, ++y) {
      Number<R> difference{x[0].re - x[apart].re, x[0].im - x[apart].im};
      y[0].re = x[0].re + x[apart].re;
      y[0].im = x[0].im + x[apart].im;
      if (p != 0) multiply(difference, twiddles + 2 * p);
      y[s] = difference;
    }
  }
}

/// An odd radix: pairs of elements that mirror each other share their products. `fixed`: the radix
/// if it is known here, else 0.
template <int fixed, class R>
VT_FFT_INLINE void pass_of_odd(const Pass& pass, const R* twiddles, const Number<R>* in,
                               Number<R>* out) {
  const int radix = fixed ? fixed : pass.radix, half = radix / 2;
  constexpr int most = fixed ? fixed / 2 : largest_prime / 2;
  R cosine[most * most], sine[most * most];
  const R* roots = twiddles + 2 * (radix - 1) * pass.part;
  for (int i = 0; i < half * half; ++i, roots += 2) {
    cosine[i] = roots[0];
    sine[i] = roots[1];
  }
  const std::int64_t s = pass.stride, apart = pass.part * s;
  for (std::int64_t p = 0; p < pass.part; ++p) {
    const R* w = twiddles + 2 * (radix - 1) * p;
    const Number<R>* x = in + p * s;
    Number<R>* y = out + radix * p * s;
    for (std::int64_t q = 0; q < s; ++q, ++x, ++y) {
      Number<R> sum[most], difference[most];
      const Number<R> first = x[0];
      Number<R> total = first;
#pragma GCC unroll 2
      for (int j = 0; j < half; ++j) {
        const Number<R>&a = x[(j + 1) * apart], &b = x[(radix - 1 - j) * apart];
        sum[j].re = a.re + b.re;
        sum[j].im = a.im + b.im;
        difference[j].re = a.re - b.re;
        difference[j].im = a.im - b.im;
        total.re += sum[j].re;
        total.im += sum[j].im;
      }
      y[0] = total;
#pragma GCC unroll 2
      for (int k = 0; k < half; ++k) {
        auto er = first.re, ei = first.im, dr = difference[0].re * sine[k * half],
             di = difference[0].im * sine[k * half];
#pragma GCC unroll 2
        for (int j = 0; j < half; ++j) {
          er += sum[j].re * cosine[k * half + j];
          ei += sum[j].im * cosine[k * half + j];
        }
#pragma GCC unroll 2
        for (int j = 1; j < half; ++j) {
          dr += difference[j].re * sine[k * half + j];
          di += difference[j].im * sine[k * half + j];
        }
        Number<R> low{er - di, ei + dr}, high{er + di, ei - dr};
        if (p != 0) {
          multiply(low, w + 2 * k);
          multiply(high, w + 2 * (radix - 2 - k));
        }
        y[(k + 1) * s] = low;
        y[(radix - 1 - k) * s] = high;
      }
    }
  }
}

// Rows of vectors become columns: after the step at distance d, SIMD lanes and vectors have
// exchanged the bit d of their numbers.
template <int d, class R, int... simd_lane>
VT_FFT_INLINE void exchange(typename VectorOf<R>::type& a, typename VectorOf<R>::type& b,
                            std::integer_sequence<int, simd_lane...>) {
  constexpr int L = simd_lanes<R>;
  const auto first =
      __builtin_shufflevector(a, b, ((simd_lane & d) ? L + simd_lane - d : simd_lane)...);
  b = __builtin_shufflevector(a, b, ((simd_lane & d) ? L + simd_lane : simd_lane + d)...);
  a = first;
}
template <class R>
VT_FFT_INLINE void turn(typename VectorOf<R>::type* v) {
  constexpr int L = simd_lanes<R>;
  constexpr auto all = std::make_integer_sequence<int, L>();
#pragma GCC unroll 8
  for (int i = 0; i < L; ++i)
    if (!(i & 1)) exchange<1, R>(v[i], v[i + 1], all);
#pragma GCC unroll 8
  for (int i = 0; i < L; ++i)
    if (!(i & 2)) exchange<2, R>(v[i], v[i + 2], all);
  if constexpr (L == 8)
#pragma GCC unroll 8
    for (int i = 0; i < 4; ++i) exchange<4, R>(v[i], v[i + 4], all);
}

template <class R, int... simd_lane>
VT_FFT_INLINE void parts_of(const R* x, R* re, R* im, std::integer_sequence<int, simd_lane...>) {
  typename VectorOf<R>::type a, b;
  std::memcpy(&a, x, sizeof a);
  std::memcpy(&b, x + simd_lanes<R>, sizeof b);
  const auto even = __builtin_shufflevector(a, b, (2 * simd_lane)...),
             odd = __builtin_shufflevector(a, b, (2 * simd_lane + 1)...);
  std::memcpy(re, &even, sizeof even);
  std::memcpy(im, &odd, sizeof odd);
}
template <class R, int... simd_lane>
VT_FFT_INLINE void joined(const R* re, const R* im, R* y,
                          std::integer_sequence<int, simd_lane...>) {
  constexpr int L = simd_lanes<R>;
  typename VectorOf<R>::type a, b;
  std::memcpy(&a, re, sizeof a);
  std::memcpy(&b, im, sizeof b);
  const auto low =
      __builtin_shufflevector(a, b, ((simd_lane & 1) ? L + simd_lane / 2 : simd_lane / 2)...);
  const auto high = __builtin_shufflevector(
      a, b, ((simd_lane & 1) ? L + (L + simd_lane) / 2 : (L + simd_lane) / 2)...);
  std::memcpy(y, &low, sizeof low);
  std::memcpy(y + L, &high, sizeof high);
}

/// Complex numbers in a vector.
template <class R>
inline constexpr int together = simd_lanes<R> / 2;

template <class R>
VT_FFT_INLINE void load(const SimdJob<R>& job, std::int64_t n, R* work) {
  constexpr int L = simd_lanes<R>;
  constexpr auto all = std::make_integer_sequence<int, L>();
  const int first = job.swap_in ? L : 0, second = L - first;
  std::int64_t done = 0;
  if (job.rows == L && job.in_row == 1) {
    for (; done < n; ++done)
      parts_of(job.in + 2 * done * job.in_step, work + 2 * L * done + first,
               work + 2 * L * done + second, all);
  } else if (job.rows == L && job.in_step == 1) {
    for (; done + together<R> <= n; done += together<R>) {
      typename VectorOf<R>::type v[L];
#pragma GCC unroll 8
      for (int l = 0; l < L; ++l)
        std::memcpy(&v[l], job.in + 2 * (l * job.in_row + done), sizeof v[l]);
      turn<R>(v);
#pragma GCC unroll 8
      for (int k = 0; k < together<R>; ++k) {
        std::memcpy(work + 2 * L * (done + k) + first, &v[2 * k], sizeof v[0]);
        std::memcpy(work + 2 * L * (done + k) + second, &v[2 * k + 1], sizeof v[0]);
      }
    }
  } else if (job.rows < L) {
    std::memset(work, 0, static_cast<std::size_t>(n) * 2 * L * sizeof(R));
  }
  for (std::int64_t i = done; i < n; ++i)
    for (int l = 0; l < job.rows; ++l) {
      const R* x = job.in + 2 * (l * job.in_row + i * job.in_step);
      work[2 * L * i + first + l] = x[0];
      work[2 * L * i + second + l] = x[1];
    }
}

template <class R>
VT_FFT_INLINE void store(const SimdJob<R>& job, std::int64_t n, const R* work) {
  constexpr int L = simd_lanes<R>;
  constexpr auto all = std::make_integer_sequence<int, L>();
  const int first = job.swap_out ? L : 0, second = L - first;
  std::int64_t done = 0;
  if (job.rows == L && job.out_row == 1) {
    for (; done < n; ++done)
      joined(work + 2 * L * done + first, work + 2 * L * done + second,
             job.out + 2 * done * job.out_step, all);
  } else if (job.rows == L && job.out_step == 1) {
    for (; done + together<R> <= n; done += together<R>) {
      typename VectorOf<R>::type v[L];
#pragma GCC unroll 8
      for (int k = 0; k < together<R>; ++k) {
        std::memcpy(&v[2 * k], work + 2 * L * (done + k) + first, sizeof v[0]);
        std::memcpy(&v[2 * k + 1], work + 2 * L * (done + k) + second, sizeof v[0]);
      }
      turn<R>(v);
#pragma GCC unroll 8
      for (int l = 0; l < L; ++l)
        std::memcpy(job.out + 2 * (l * job.out_row + done), &v[l], sizeof v[l]);
    }
  }
  for (std::int64_t i = done; i < n; ++i)
    for (int l = 0; l < job.rows; ++l) {
      R* y = job.out + 2 * (l * job.out_row + i * job.out_step);
      y[0] = work[2 * L * i + first + l];
      y[1] = work[2 * L * i + second + l];
    }
}

template <class R>
VT_FFT_INLINE void run(const SimdPlan<R>& plan, const SimdJob<R>& job, R* work) {
  using V = typename VectorOf<R>::type;
  constexpr int L = simd_lanes<R>;
  auto* in = reinterpret_cast<Number<R>*>(work);
  auto* out = in + plan.n;
  const bool parts = job.turns && job.swap_out, joins = job.turns && !job.swap_out;
  load(job, plan.n + parts, work);
  if (parts) part_spectra<true>(in, in, plan.n, job.turns, 0, plan.n / 2 + 1);
  for (const Pass& pass : plan.passes) {
    const R* w = plan.twiddles.data() + pass.twiddles;
    switch (pass.radix) {
      case 8: pass_of_8(pass, w, in, out); break;
      case 4: pass_of_4(pass, w, in, out); break;
      case 2: pass_of_2(pass, w, in, out); break;
      case 3: pass_of_odd<3>(pass, w, in, out); break;
      case 5: pass_of_odd<5>(pass, w, in, out); break;
      default: pass_of_odd<0>(pass, w, in, out); break;
    }
    auto* const swap = in;
    in = out;
    out = swap;
  }
  if (job.between) {
    for (std::int64_t k = 0; k < plan.n; ++k) {
      V re, im;
      std::memcpy(&re, job.along + 2 * L * k, sizeof re);
      std::memcpy(&im, job.along + 2 * L * k + L, sizeof im);
      const R* b = job.between + 2 * k;
      const auto wr = re * b[0] - im * b[1], wi = re * b[1] + im * b[0], x = in[k].re;
      in[k].re = x * wr - in[k].im * wi;
      in[k].im = x * wi + in[k].im * wr;
    }
  }
  if (job.scale != 1)
    for (std::int64_t k = 0; k < plan.n; ++k) {
      in[k].re *= job.scale;
      in[k].im *= job.scale;
    }
  if (joins) join_spectra(in, in, plan.n, job.turns, 0, plan.n / 2 + 1);
  store(job, plan.n + joins, reinterpret_cast<const R*>(in));
}

#if defined(VT_FFT_AVX2)
VT_FFT_AVX2 void run_avx2(const SimdPlan<float>& plan, const SimdJob<float>& job, float* work) {
  run(plan, job, work);
}
VT_FFT_AVX2 void run_avx2(const SimdPlan<double>& plan, const SimdJob<double>& job, double* work) {
  run(plan, job, work);
}
#endif

}  // namespace simd_kernel

template <class R>
void run_simd_lanes(const SimdPlan<R>& plan, const SimdJob<R>& job, R* work) {
#if defined(VT_FFT_AVX2)
  if (machine_level() != MachineLevel::any) return simd_kernel::run_avx2(plan, job, work);
#endif
  simd_kernel::run(plan, job, work);
}
template void run_simd_lanes(const SimdPlan<float>&, const SimdJob<float>&, float*);
template void run_simd_lanes(const SimdPlan<double>&, const SimdJob<double>&, double*);

}  // namespace vt::detail::fft

#undef VT_FFT_AVX2
#undef VT_FFT_INLINE
