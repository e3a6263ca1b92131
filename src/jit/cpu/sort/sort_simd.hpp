// The vectorized loops of sorting, written once for any vector width and compiled for several
// machines: networks over short rows beside each other, and the search for the first elements.
// Internal to sort_kernel.cpp.
#pragma once

#include <type_traits>

#include "../../../trace/base/machine_level.hpp"
#include "sort_records.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define VT_SORT_MACHINES 1
#endif

namespace vt::detail::sorting {

// rows beside each other, a SIMD lane for each: place i of SIMD lane c is element i · strip + c
constexpr std::int64_t strip = 64;

namespace simd_loops {

template <class T, int bytes>
struct Vector {
  typedef T type __attribute__((vector_size(bytes), aligned(sizeof(T)), may_alias));
};

// Batcher's merge exchange (Knuth, The Art of Computer Programming 3, 5.2.2, algorithm M): right
// for any number of places. Always inlined into functions compiled for one machine each, so that no
// vector is ever handed from one to the other.
template <class T, int bytes>
inline __attribute__((always_inline)) void network(T* rows, std::int64_t places,
                                                   std::int64_t simd_lanes) {
  using V = typename Vector<T, bytes>::type;
  constexpr std::int64_t width = bytes / static_cast<std::int64_t>(sizeof(T));
  std::int64_t top = 1;
  while (2 * top < places) top *= 2;
  for (std::int64_t p = top; p > 0; p /= 2) {
    std::int64_t q = top, r = 0, d = p;
    while (true) {
      for (std::int64_t i = 0; i + d < places; ++i) {
        if ((i & p) != r) continue;
        for (T *a = rows + i * strip, *end = a + simd_lanes; a < end; a += width) {
          V &low = *reinterpret_cast<V*>(a), &high = *reinterpret_cast<V*>(a + d * strip);
          const V x = low, y = high;
          low = x < y ? x : y;
          high = x < y ? y : x;
        }
      }
      if (q == p) break;
      d = q - p;
      q /= 2;
      r = p;
    }
  }
}

// NaN counts as early, as its place depends on the direction.
template <class T, int bytes>
inline __attribute__((always_inline)) bool any_before(const T* x, std::int64_t n,
                                                      const KeyForm<T>& form, T bar) {
  using V = typename Vector<T, bytes>::type;
  constexpr std::int64_t width = bytes / static_cast<std::int64_t>(sizeof(T));
  using S = std::make_signed_t<T>;
  using Signed = typename Vector<S, bytes>::type;
  const V none = {}, magnitude = none + static_cast<T>(~form.sign),
          sign = none + static_cast<T>(form.sign ^ form.flip);
  const V negative = none + static_cast<T>(form.negative & ~form.sign);
  V first = none + KeyForm<T>::all, largest = none;
  for (std::int64_t i = 0; i < n; i += width) {
    const V e = *reinterpret_cast<const V*>(x + i);
    const V key = e ^ sign ^
                  (reinterpret_cast<V>(reinterpret_cast<Signed>(e) >> (8 * sizeof(T) - 1)) &
                   negative),
            size = e & magnitude;
    first = key < first ? key : first;
    largest = size > largest ? size : largest;
  }
  unsigned found = 0;
  for (std::int64_t k = 0; k < width; ++k)
    found |=
        static_cast<unsigned>(first[k] < bar) | static_cast<unsigned>(largest[k] > form.infinity);
  return found != 0;
}

}  // namespace simd_loops

struct Machine {
  /// SIMD lanes: a multiple of 16
  void (*network32)(std::uint32_t* rows, std::int64_t places, std::int64_t simd_lanes);
  void (*network64)(Word* rows, std::int64_t places, std::int64_t simd_lanes);
  /// Has one of n elements, a multiple of 16, a key before `bar`, or is it NaN?
  bool (*before32)(const std::uint32_t*, std::int64_t n, const KeyForm<std::uint32_t>&,
                   std::uint32_t bar);
  bool (*before64)(const Word*, std::int64_t n, const KeyForm<Word>&, Word bar);
};

#define VT_SORT_MACHINE(name, target, bytes)                                               \
  namespace name {                                                                         \
  target inline void network32(std::uint32_t* rows, std::int64_t places,                   \
                               std::int64_t simd_lanes) {                                  \
    simd_loops::network<std::uint32_t, bytes>(rows, places, simd_lanes);                   \
  }                                                                                        \
  target inline void network64(Word* rows, std::int64_t places, std::int64_t simd_lanes) { \
    simd_loops::network<Word, bytes>(rows, places, simd_lanes);                            \
  }                                                                                        \
  target inline bool before32(const std::uint32_t* x, std::int64_t n,                      \
                              const KeyForm<std::uint32_t>& form, std::uint32_t bar) {     \
    return simd_loops::any_before<std::uint32_t, bytes>(x, n, form, bar);                  \
  }                                                                                        \
  target inline bool before64(const Word* x, std::int64_t n, const KeyForm<Word>& form,    \
                              Word bar) {                                                  \
    return simd_loops::any_before<Word, bytes>(x, n, form, bar);                           \
  }                                                                                        \
  inline constexpr Machine machine = {network32, network64, before32, before64};           \
  }

VT_SORT_MACHINE(any, , 16)
#ifdef VT_SORT_MACHINES
VT_SORT_MACHINE(avx2, __attribute__((target("avx2"))), 32)
VT_SORT_MACHINE(avx512, __attribute__((target("avx512f,avx512bw,avx512vl"))), 64)
#endif
#undef VT_SORT_MACHINE

inline const Machine& machine() {
#ifdef VT_SORT_MACHINES
  switch (machine_level()) {
    case MachineLevel::avx512: return avx512::machine;
    case MachineLevel::avx2: return avx2::machine;
    default: return any::machine;
  }
#else
  return any::machine;
#endif
}

}  // namespace vt::detail::sorting
