// Fourier transforms of arrays: several rows side by side in SIMD lanes; long rows in two steps
// (Bailey 1990, "FFTs in external or hierarchical memory"); lengths with large prime factors as
// convolutions (Bluestein 1970); real rows as complex ones of half the length.
#include "fft_kernels.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>

#include <vt/detail/small_vec.hpp>

#include "../base/hash_map.hpp"
#include "../base/locks.hpp"
#include "fft_simd.hpp"

namespace vt::detail {

namespace fft_driver {

using namespace fft;

/// Rows longer than this do not stay in the cache while they go through the passes.
constexpr std::int64_t longest_row = 4096;
/// From here on one row alone is better taken in two steps, whose rows and columns fill the lanes.
constexpr std::int64_t worth_two_steps = 256;

template <class R>
struct Plan;
template <class R>
using PlanRef = std::shared_ptr<const Plan<R>>;

/// Everything that a length needs.
template <class R>
struct Plan {
  std::int64_t n = 1;
  SimdPlan<R> direct;  ///< for rows that are not split
  // Long rows: n = columns · rows of a matrix, with both lengths' plans and the factors between the
  // steps in pieces.
  std::int64_t n1 = 0, n2 = 0;
  PlanRef<R> first, second;
  Vec<R> coarse, fine, along;
  std::int64_t fine_count = 1;
  // Convolution: of length m.
  PlanRef<R> convolution;
  Vec<R> chirp, filter;
};

template <class R>
PlanRef<R> plan_for(std::int64_t n);

template <class R>
void append(Vec<R>& list, Root w) {
  list.push_back(static_cast<R>(w.re));
  list.push_back(static_cast<R>(w.im));
}

/// Memory for run_lanes.
template <class R>
class Work {
 public:
  explicit Work(std::int64_t n) : buffer_(allocate(bytes(n), "fft")) {}
  static std::size_t bytes(std::int64_t n) {
    return static_cast<std::size_t>((4 * n + 2) * simd_lanes<R>) * sizeof(R);
  }
  R* get() { return buffer_->as<R>(); }

 private:
  BufferRef buffer_;
};

template <class F>
void ranges(FftRanges run, std::int64_t total, const F& f) {
  run(
      total,
      [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<const F*>(context))(begin, end);
      },
      const_cast<F*>(&f));
}
void one_range(std::int64_t total, void (*body)(void*, std::int64_t, std::int64_t), void* context) {
  body(context, 0, total);
}

/// Along the middle of row-major [outer, n, inner] complex numbers.
template <class R>
struct Many {
  const R* in;
  R* out;
  std::int64_t outer, inner;
  bool backward;
  R scale;
  const R* turns = nullptr;  ///< real rows of 2 · n numbers: RealPlan::turns, inner is 1
};

/// Groups of rows, each through all its passes.
template <class R>
void direct(const Plan<R>& plan, const Many<R>& m, FftRanges run) {
  const std::int64_t n = plan.n, rows = m.inner == 1 ? m.outer : m.inner,
                     blocks = m.inner == 1 ? 1 : m.outer;
  const std::int64_t groups = (rows + simd_lanes<R> - 1) / simd_lanes<R>;
  const bool parts = m.turns && m.backward, joins = m.turns && !m.backward;
  ranges(run, blocks * groups, [&](std::int64_t begin, std::int64_t end) {
    Work<R> work(n);
    for (std::int64_t g = begin; g < end; ++g) {
      const std::int64_t row = g % groups * simd_lanes<R>;
      SimdJob<R> job;
      const std::int64_t at = m.inner == 1 ? 0 : g / groups * n * m.inner;
      job.in_step = job.out_step = m.inner;
      job.in_row = m.inner == 1 ? n + parts : 1;
      job.out_row = m.inner == 1 ? n + joins : 1;
      job.in = m.in + 2 * (at + row * job.in_row);
      job.out = m.out + 2 * (at + row * job.out_row);
      job.turns = m.turns;
      job.rows = static_cast<int>(std::min<std::int64_t>(simd_lanes<R>, rows - row));
      job.swap_in = m.backward && !parts;
      job.swap_out = m.backward;
      job.scale = m.scale;
      run_simd_lanes(plan.direct, job, work.get());
    }
  });
}

/// One row of n = n1 · n2 as a matrix: columns, factors, rows, and the result is the transpose.
template <class R>
void in_two_steps(const Plan<R>& plan, const R* in, R* out, R* between, bool backward, R scale,
                  FftRanges run) {
  const std::int64_t n1 = plan.n1, n2 = plan.n2;
  constexpr int L = simd_lanes<R>;
  ranges(run, (n2 + L - 1) / L, [&](std::int64_t begin, std::int64_t end) {
    Work<R> work(n1);
    Vec<R> factors(2 * n1);
    for (std::int64_t g = begin; g < end; ++g) {
      const std::int64_t column = g * L;
      for (std::int64_t k = 0; k < n1; ++k) {  // exp(−2πi · k · column / n) from two tables
        const std::int64_t turn = k * column % plan.n;
        const R *a = plan.coarse.data() + 2 * (turn / plan.fine_count),
                *b = plan.fine.data() + 2 * (turn % plan.fine_count);
        factors[2 * k] = a[0] * b[0] - a[1] * b[1];
        factors[2 * k + 1] = a[0] * b[1] + a[1] * b[0];
      }
      SimdJob<R> job;
      job.in = in + 2 * column;
      job.out = between + 2 * column;
      job.in_step = job.out_step = n2;
      job.in_row = job.out_row = 1;
      job.rows = static_cast<int>(std::min<std::int64_t>(L, n2 - column));
      job.swap_in = backward;
      job.between = factors.data();
      job.along = plan.along.data();
      run_simd_lanes(plan.first->direct, job, work.get());
    }
  });
  ranges(run, (n1 + L - 1) / L, [&](std::int64_t begin, std::int64_t end) {
    Work<R> work(n2);
    for (std::int64_t g = begin; g < end; ++g) {
      SimdJob<R> job;
      job.in = between + 2 * g * L * n2;
      job.out = out + 2 * g * L;
      job.in_row = n2;
      job.out_row = 1;
      job.out_step = n1;
      job.rows = static_cast<int>(std::min<std::int64_t>(L, n1 - g * L));
      job.swap_out = backward;
      job.scale = scale;
      run_simd_lanes(plan.second->direct, job, work.get());
    }
  });
}

template <class R>
void rows_of(const Plan<R>& plan, const Many<R>& m, FftRanges run);

/// Rows as convolutions with a chirp, a few rows at a time.
template <class R>
void convolved(const Plan<R>& plan, const Many<R>& m, FftRanges run) {
  const std::int64_t n = plan.n, length = plan.convolution->n, rows = m.outer * m.inner;
  constexpr std::int64_t L = simd_lanes<R>;
  const bool apart = rows > 2 * L;  // threads take groups of rows; else they share the rows
  ranges(apart ? run : one_range, (rows + L - 1) / L, [&](std::int64_t begin, std::int64_t end) {
    const auto bytes = static_cast<std::size_t>(2 * L * length) * sizeof(R);
    const BufferRef first = allocate(bytes, "fft"), second = allocate(bytes, "fft");
    R *a = first->as<R>(), *b = second->as<R>();
    for (std::int64_t g = begin; g < end; ++g) {
      const std::int64_t count = std::min(L, rows - g * L);
      const auto offset = [&](std::int64_t l) {
        return 2 * ((g * L + l) / m.inner * n * m.inner + (g * L + l) % m.inner);
      };
      for (std::int64_t l = 0; l < count; ++l) {
        R* row = a + 2 * l * length;
        for (std::int64_t i = 0; i < n; ++i) {
          const R *x = m.in + offset(l) + 2 * i * m.inner, *w = plan.chirp.data() + 2 * i;
          const R re = m.backward ? x[1] : x[0], im = m.backward ? x[0] : x[1];
          row[2 * i] = re * w[0] - im * w[1];
          row[2 * i + 1] = re * w[1] + im * w[0];
        }
        std::fill(row + 2 * n, row + 2 * length, R(0));
      }
      const FftRanges inside = apart ? one_range : run;
      rows_of(*plan.convolution, Many<R>{a, b, count, 1, false, R(1)}, inside);
      for (std::int64_t l = 0; l < count; ++l)
        for (std::int64_t i = 0; i < length; ++i) {
          R* x = b + 2 * (l * length + i);
          const R* w = plan.filter.data() + 2 * i;
          const R re = x[0] * w[0] - x[1] * w[1];
          x[1] = x[0] * w[1] + x[1] * w[0];
          x[0] = re;
        }
      rows_of(*plan.convolution, Many<R>{b, a, count, 1, true, R(1)}, inside);
      for (std::int64_t l = 0; l < count; ++l)
        for (std::int64_t i = 0; i < n; ++i) {
          const R *x = a + 2 * (l * length + i), *w = plan.chirp.data() + 2 * i;
          R* y = m.out + offset(l) + 2 * i * m.inner;
          const R re = (x[0] * w[0] - x[1] * w[1]) * m.scale,
                  im = (x[0] * w[1] + x[1] * w[0]) * m.scale;
          y[0] = m.backward ? im : re;
          y[1] = m.backward ? re : im;
        }
    }
  });
}

/// Do rows go through their passes in SIMD lanes, and not as two steps or as convolutions?
template <class R>
bool in_simd_lanes(const Plan<R>& plan, std::int64_t outer, std::int64_t inner) {
  const bool few = outer * 2 <= simd_lanes<R>;
  return !plan.convolution && (!plan.first || inner != 1 || (plan.n <= longest_row && !few));
}

/// `in` and `out` may be the same.
template <class R>
void rows_of(const Plan<R>& plan, const Many<R>& m, FftRanges run) {
  if (plan.n * m.outer * m.inner == 0) return;
  if (plan.convolution) return convolved(plan, m, run);
  if (in_simd_lanes(plan, m.outer, m.inner)) return direct(plan, m, run);
  const BufferRef between = allocate(static_cast<std::size_t>(2 * plan.n) * sizeof(R), "fft");
  for (std::int64_t o = 0; o < m.outer; ++o)
    in_two_steps(plan, m.in + 2 * o * plan.n, m.out + 2 * o * plan.n, between->as<R>(), m.backward,
                 m.scale, run);
}

template <class R>
void split(Plan<R>& plan) {
  // The divisor next to the square root.
  std::int64_t best = 1;
  for (std::int64_t d = 1; d * d <= plan.n; ++d)
    if (plan.n % d == 0) best = d;
  if (best < 2 * simd_lanes<R>) return;
  plan.n1 = best;
  plan.n2 = plan.n / best;
  plan.fine_count = static_cast<std::int64_t>(std::sqrt(static_cast<double>(plan.n))) + 1;
  for (std::int64_t i = 0; i < plan.fine_count; ++i) append(plan.fine, root_of_unity(i, plan.n));
  for (std::int64_t i = 0; i * plan.fine_count < plan.n; ++i)
    append(plan.coarse, root_of_unity(i * plan.fine_count, plan.n));
  for (std::int64_t k = 0; k < plan.n1; ++k) {
    Root w[simd_lanes<R>];
    for (int l = 0; l < simd_lanes<R>; ++l) w[l] = root_of_unity(k * l % plan.n, plan.n);
    for (const Root& r : w) plan.along.push_back(static_cast<R>(r.re));
    for (const Root& r : w) plan.along.push_back(static_cast<R>(r.im));
  }
  plan.first = plan_for<R>(plan.n1);
  plan.second = plan_for<R>(plan.n2);
}

/// The least length of small factors that holds a convolution of n with n elements.
std::int64_t convolution_length(std::int64_t n) {
  const std::int64_t least = 2 * n - 1;
  std::int64_t best = 1;
  while (best < least) best *= 2;
  for (std::int64_t sevens = 1; sevens <= 7; sevens *= 7)
    for (std::int64_t fives = sevens; fives < best && fives <= 25 * sevens; fives *= 5)
      for (std::int64_t threes = fives; threes < best && threes <= 27 * fives; threes *= 3) {
        std::int64_t m = threes;
        while (m < least) m *= 2;
        best = std::min(best, m);
      }
  return best;
}

template <class R>
PlanRef<R> make_plan(std::int64_t n) {
  auto plan = std::make_shared<Plan<R>>();
  plan->n = n;
  std::int64_t rest = 1;
  radices_of(n, &rest);
  if (rest == 1) {
    if (n >= worth_two_steps) split(*plan);
    plan->direct = make_simd_plan<R>(n);
    return plan;
  }
  const std::int64_t m = convolution_length(n);
  plan->convolution = plan_for<R>(m);
  Vec<R> kernel(2 * m, R(0));
  for (std::int64_t i = 0; i < n; ++i) {
    __extension__ typedef unsigned __int128 Wide;
    const auto square = static_cast<std::int64_t>(static_cast<Wide>(i) * static_cast<Wide>(i) %
                                                  static_cast<Wide>(2 * n));
    const Root w = root_of_unity(square, 2 * n);  // exp(−πi · i² / n)
    append(plan->chirp, w);
    for (const std::int64_t at : {i, (m - i) % m}) {
      kernel[2 * at] = static_cast<R>(w.re / static_cast<long double>(m));
      kernel[2 * at + 1] = static_cast<R>(-w.im / static_cast<long double>(m));
    }
  }
  plan->filter.resize(kernel.size());
  rows_of(*plan->convolution, Many<R>{kernel.data(), plan->filter.data(), 1, 1, false, R(1)},
          one_range);
  return plan;
}

/// What `make` gives for a length, kept for the next call.
template <class P>
std::shared_ptr<const P> kept(std::int64_t n, std::shared_ptr<const P> (*make)(std::int64_t)) {
  struct Cache {
    Mutex mutex;
    HashMap<std::int64_t, std::shared_ptr<const P>> plans;
  };
  // never destroyed: other threads may still transform while the process ends
  static Cache* const cache = new Cache;
  constexpr std::size_t most = 64;
  {
    std::lock_guard lock(cache->mutex);
    if (const auto at = cache->plans.find(n); at != cache->plans.end()) return at->second;
  }
  std::shared_ptr<const P> plan = make(n);  // asks for other plans itself
  std::lock_guard lock(cache->mutex);
  if (cache->plans.size() >= most) cache->plans.clear();
  cache->plans.emplace(n, plan);
  return plan;
}
template <class R>
PlanRef<R> plan_for(std::int64_t n) {
  return kept<Plan<R>>(n, make_plan<R>);
}

template <class R>
struct Pair {
  R re, im;
};
template <class R>
const Pair<R>* pairs(const R* x) {
  return reinterpret_cast<const Pair<R>*>(x);
}
template <class R>
Pair<R>* pairs(R* x) {
  return reinterpret_cast<Pair<R>*>(x);
}

/// For real rows of length n: as complex ones of half the length if it is even, with what
/// join_spectra and part_spectra need.
template <class R>
struct RealPlan {
  PlanRef<R> complex;
  Vec<R> turns;
};
template <class R>
std::shared_ptr<const RealPlan<R>> make_real_plan(std::int64_t n) {
  auto plan = std::make_shared<RealPlan<R>>();
  const bool even = n % 2 == 0;
  plan->complex = plan_for<R>(even ? n / 2 : n);
  for (std::int64_t k = 0; even && 4 * k <= n; ++k) append(plan->turns, root_of_unity(k, n));
  return plan;
}
template <class R>
std::shared_ptr<const RealPlan<R>> real_plan_for(std::int64_t n) {
  return kept<RealPlan<R>>(n, make_real_plan<R>);
}

/// Between the spectra of `rows` real rows and those of their halves: f(row, begin, end) for all
/// pairs of frequencies; long rows in parts.
void by_frequencies(std::int64_t rows, std::int64_t h, FftRanges run,
                    FunctionRef<void(std::int64_t row, std::int64_t begin, std::int64_t end)> f) {
  constexpr std::int64_t part = 4096;
  const std::int64_t pairs = h / 2 + 1, parts = (pairs + part - 1) / part;
  ranges(parts > 1 ? run : one_range, rows * parts, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      f(i / parts, i % parts * part, std::min(pairs, (i % parts + 1) * part));
  });
}

/// Calls f(begin, end, how the transforms inside run) on blocks of rows that stay in the cache.
struct Blocks {
  static constexpr std::int64_t cache = 128 * 1024, least = 8;
  std::int64_t rows, size, count;
  Blocks(std::int64_t all, std::int64_t bytes_of_row)
      : rows(all),
        size(std::max(least, cache / bytes_of_row / least * least)),
        count((rows + size - 1) / size) {}
  bool apart() const { return count > 3; }  // threads take blocks; else they share the rows
};
template <class F>
void by_blocks(const Blocks& b, FftRanges run, const F& f) {
  ranges(b.apart() ? run : one_range, b.count, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      f(i * b.size, std::min(b.rows, (i + 1) * b.size), b.apart() ? one_range : run);
  });
}

/// What rows_of takes.
template <class R>
std::size_t rows_bytes(const Plan<R>& plan, std::int64_t outer, std::int64_t inner,
                       std::int64_t threads) {
  constexpr std::int64_t L = simd_lanes<R>;
  const auto with = [&](std::int64_t ranges, std::size_t each) {
    return static_cast<std::size_t>(std::min(threads, ranges)) * each;
  };
  const auto groups = [](std::int64_t rows) { return (rows + L - 1) / L; };
  const std::int64_t rows = outer * inner;
  if (plan.n * rows == 0) return 0;
  if (plan.convolution) {
    const bool apart = rows > 2 * L;
    const std::size_t inside =
        rows_bytes(*plan.convolution, std::min(L, rows), 1, apart ? 1 : threads);
    return with(apart ? groups(rows) : 1,
                static_cast<std::size_t>(4 * L * plan.convolution->n) * sizeof(R) + inside);
  }
  if (in_simd_lanes(plan, outer, inner))
    return with(inner == 1 ? groups(outer) : outer * groups(inner), Work<R>::bytes(plan.n));
  return static_cast<std::size_t>(2 * plan.n) * sizeof(R) +
         std::max(with(groups(plan.n2), Work<R>::bytes(plan.n1)),
                  with(groups(plan.n1), Work<R>::bytes(plan.n2)));
}

/// … and what from_real and to_real do.
template <class R>
std::size_t real_bytes(std::int64_t n, std::int64_t rows, bool to_real, std::int64_t threads) {
  const bool even = n % 2 == 0;
  const std::int64_t points = even ? n / 2 : n;
  const PlanRef<R> plan = real_plan_for<R>(n)->complex;
  if (even && in_simd_lanes(*plan, rows, 1)) return rows_bytes(*plan, rows, 1, threads);
  const Blocks blocks(rows, points * static_cast<std::int64_t>(2 * sizeof(R)));
  const std::int64_t count = std::min(blocks.size, rows),
                     at_once = blocks.apart() ? std::min(threads, blocks.count) : 1;
  const std::size_t spectra =
      even && to_real ? 0 : static_cast<std::size_t>(count * points * 2) * sizeof(R);
  return static_cast<std::size_t>(at_once) *
         (spectra + rows_bytes(*plan, count, 1, blocks.apart() ? 1 : threads));
}

template <class R>
void from_real(std::int64_t n, std::int64_t rows, const R* in, R* out, FftRanges run) {
  const std::int64_t h = n / 2, width = h + 1;
  const bool even = n % 2 == 0;
  const std::int64_t points = even ? h : n;
  const std::shared_ptr<const RealPlan<R>> real = real_plan_for<R>(n);
  const PlanRef<R>& plan = real->complex;
  const R* w = real->turns.data();
  if (even && in_simd_lanes(*plan, rows, 1))
    return rows_of(*plan, Many<R>{in, out, rows, 1, false, R(1), w}, run);
  by_blocks(Blocks(rows, points * static_cast<std::int64_t>(2 * sizeof(R))), run,
            [&](std::int64_t begin, std::int64_t end, FftRanges inside) {
              const std::int64_t count = end - begin;
              const BufferRef spectra =
                  allocate(static_cast<std::size_t>(count * points * 2) * sizeof(R), "fft");
              R* z = spectra->as<R>();
              if (even) {
                rows_of(*plan, Many<R>{in + begin * n, z, count, 1, false, R(1)}, inside);
                return by_frequencies(
                    count, h, inside, [&](std::int64_t r, std::int64_t from, std::int64_t to) {
                      join_spectra(pairs(z) + r * h, pairs(out) + (begin + r) * width, h, w, from,
                                   to);
                    });
              }
              for (std::int64_t i = 0; i < count * n; ++i) {
                z[2 * i] = in[begin * n + i];
                z[2 * i + 1] = 0;
              }
              rows_of(*plan, Many<R>{z, z, count, 1, false, R(1)}, inside);
              for (std::int64_t r = 0; r < count; ++r) {
                R* row = out + 2 * (begin + r) * width;
                std::memcpy(row, z + 2 * r * n, static_cast<std::size_t>(2 * width) * sizeof(R));
                row[1] = 0;
              }
            });
}

template <class R>
void to_real(std::int64_t n, std::int64_t rows, const R* in, R* out, R scale, FftRanges run) {
  const std::int64_t h = n / 2, width = h + 1;
  const bool even = n % 2 == 0;
  const std::int64_t points = even ? h : n;
  const std::shared_ptr<const RealPlan<R>> real = real_plan_for<R>(n);
  const PlanRef<R>& plan = real->complex;
  const R* w = real->turns.data();
  if (even && in_simd_lanes(*plan, rows, 1))
    return rows_of(*plan, Many<R>{in, out, rows, 1, true, scale, w}, run);
  by_blocks(Blocks(rows, points * static_cast<std::int64_t>(2 * sizeof(R))), run,
            [&](std::int64_t begin, std::int64_t end, FftRanges inside) {
              const std::int64_t count = end - begin;
              if (even) {
                R* own = out + begin * n;
                by_frequencies(count, h, inside,
                               [&](std::int64_t r, std::int64_t from, std::int64_t to) {
                                 part_spectra<false>(pairs(in) + (begin + r) * width,
                                                     pairs(own) + r * h, h, w, from, to);
                               });
                return rows_of(*plan, Many<R>{own, own, count, 1, true, scale}, inside);
              }
              const BufferRef spectra =
                  allocate(static_cast<std::size_t>(count * n * 2) * sizeof(R), "fft");
              R* z = spectra->as<R>();
              for (std::int64_t r = 0; r < count; ++r) {
                const R* x = in + 2 * (begin + r) * width;
                R* row = z + 2 * r * n;
                row[0] = x[0];
                row[1] = 0;
                for (std::int64_t k = 1; k < width; ++k) {
                  row[2 * k] = row[2 * (n - k)] = x[2 * k];
                  row[2 * k + 1] = x[2 * k + 1];
                  row[2 * (n - k) + 1] = -x[2 * k + 1];
                }
              }
              rows_of(*plan, Many<R>{z, z, count, 1, true, scale}, inside);
              for (std::int64_t i = 0; i < count * n; ++i) out[begin * n + i] = z[2 * i];
            });
}

template <class R>
std::size_t scratch_bytes(const FftSpec& s, std::int64_t threads) {
  const std::size_t axes = s.lengths.size();
  const bool real = s.kind == FftKind::rfft || s.kind == FftKind::irfft,
             back = s.kind == FftKind::irfft;
  const std::int64_t last = s.lengths[axes - 1], width = real ? last / 2 + 1 : last;
  std::int64_t rows = s.batch, inner = width;
  for (std::size_t i = 0; i + 1 < axes; ++i) rows *= s.lengths[i];
  if (rows * last == 0) return 0;
  std::size_t most = real ? real_bytes<R>(last, rows, back, threads)
                          : rows_bytes(*plan_for<R>(last), rows, 1, threads);
  std::int64_t outer = rows;
  for (std::size_t i = axes - 1; i-- > 0; inner *= s.lengths[i]) {
    outer /= s.lengths[i];
    most = std::max(most, rows_bytes(*plan_for<R>(s.lengths[i]), outer, inner, threads));
  }
  return most + (back && axes > 1 ? static_cast<std::size_t>(2 * rows * width) * sizeof(R) : 0);
}

template <class R>
void run(const FftSpec& s, const R* in, R* out, FftRanges run) {
  const std::size_t axes = s.lengths.size();
  std::int64_t rows = s.batch, all = 1;
  for (std::int64_t n : s.lengths) all *= n;
  if (rows * all == 0) return;
  const bool backward = s.kind == FftKind::ifft || s.kind == FftKind::irfft,
             real = s.kind == FftKind::rfft || s.kind == FftKind::irfft;
  const R scale = backward ? static_cast<R>(1.0L / static_cast<long double>(all)) : R(1);
  const std::int64_t last = s.lengths[axes - 1], width = real ? last / 2 + 1 : last;
  for (std::size_t i = 0; i + 1 < axes; ++i) rows *= s.lengths[i];
  // The axes before the last, in an array whose last axis has `width` elements.
  const auto others = [&](const R* from, R* to) {
    std::int64_t outer = rows, inner = width;
    for (std::size_t i = axes - 1; i-- > 0;) {
      outer /= s.lengths[i];
      rows_of(*plan_for<R>(s.lengths[i]), Many<R>{from, to, outer, inner, backward, R(1)}, run);
      inner *= s.lengths[i];
      from = to;
    }
  };
  switch (s.kind) {
    case FftKind::fft:
    case FftKind::ifft:
      rows_of(*plan_for<R>(last), Many<R>{in, out, rows, 1, backward, scale}, run);
      return others(out, out);
    case FftKind::rfft: from_real(last, rows, in, out, run); return others(out, out);
    case FftKind::irfft: {
      if (axes == 1) return to_real(last, rows, in, out, scale, run);
      const BufferRef between =
          allocate(static_cast<std::size_t>(2 * rows * width) * sizeof(R), "fft");
      others(in, between->as<R>());
      return to_real(last, rows, between->as<const R>(), out, scale, run);
    }
  }
}

}  // namespace fft_driver

std::int64_t FftSpec::operations() const {
  std::int64_t all = std::max<std::int64_t>(batch, 1);
  double bits = 0;
  for (std::int64_t n : lengths) {
    all *= std::max<std::int64_t>(n, 1);
    bits += std::log2(static_cast<double>(std::max<std::int64_t>(n, 2)));
  }
  return static_cast<std::int64_t>(static_cast<double>(all) * bits * 5);
}

FftSpec fft_spec(const FftParams& p, const Aval& operand) {
  FftSpec s;
  s.kind = p.kind;
  s.part = real_dtype(operand.dtype);
  // Once lowered, complex numbers are two elements along one more axis.
  const std::size_t rank = operand.shape.size() - (p.parts && p.kind != FftKind::rfft ? 1 : 0);
  s.batch = 1;
  for (std::size_t i = 0; i + p.lengths.size() < rank; ++i) s.batch *= operand.shape[i];
  for (std::int64_t n : p.lengths) s.lengths.push_back(n);
  return s;
}

void run_fft(const FftSpec& spec, const void* in, void* out, FftRanges ranges) {
  if (spec.part == DType::f32)
    fft_driver::run(spec, static_cast<const float*>(in), static_cast<float*>(out), ranges);
  else fft_driver::run(spec, static_cast<const double*>(in), static_cast<double*>(out), ranges);
}

std::size_t fft_scratch_bytes(const FftSpec& s, std::int64_t threads) {
  return s.part == DType::f32 ? fft_driver::scratch_bytes<float>(s, threads)
                              : fft_driver::scratch_bytes<double>(s, threads);
}

}  // namespace vt::detail
