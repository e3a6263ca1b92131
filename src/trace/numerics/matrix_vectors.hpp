// Vectors of floats or doubles for loops that are written once and compiled for several machines.
#pragma once

#include <cstdint>

#include "../base/machine_level.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define VT_MATRIX_MACHINES 1
#endif

namespace vt::detail::simd_rows {

using Index = std::int64_t;

/// A vector of E that need not be aligned; of 1 byte: E itself.
template <class E, int bytes>
struct SimdLanes {
  typedef E type __attribute__((vector_size(bytes), aligned(alignof(E)), may_alias));
  using Element = E;
  using Half = SimdLanes<E, (bytes / 2 < 16 ? 1 : bytes / 2)>;
  using Four = SimdLanes<E, 4 * static_cast<int>(sizeof(E))>;
  static constexpr Index width = bytes / static_cast<Index>(sizeof(E));
};
template <class E>
struct SimdLanes<E, 1> {
  using type = E;
  using Element = E;
  static constexpr Index width = 1;
};

// Always inlined into functions compiled for one machine each, so that no vector is ever handed
// from one to the other.
#define VT_SIMD_LOOP \
  template <class L> \
  inline __attribute__((always_inline))

namespace simd_loops {

template <class L>
using Element = typename L::Element;
// The vector at p. Not a function: clang 14 and 16 take a vector behind a returned reference for an
// aligned one.
#define VT_AT(L, p) (*(typename L::type*)(p))

/// By halves.
VT_SIMD_LOOP Element<L> sum_of(const typename L::type& a) {
  if constexpr (L::width == 16) {
    return sum_of<typename L::Half>(__builtin_shufflevector(a, a, 0, 1, 2, 3, 4, 5, 6, 7) +
                                    __builtin_shufflevector(a, a, 8, 9, 10, 11, 12, 13, 14, 15));
  } else if constexpr (L::width == 8) {
    return sum_of<typename L::Half>(__builtin_shufflevector(a, a, 0, 1, 2, 3) +
                                    __builtin_shufflevector(a, a, 4, 5, 6, 7));
  } else if constexpr (L::width == 4) {
    return (a[0] + a[2]) + (a[1] + a[3]);
  } else if constexpr (L::width == 2) {
    return a[0] + a[1];
  } else {
    return a;
  }
}

// VT_FOR_MACHINES(M): M(namespace, function attribute, bytes of a vector) for each machine.
#ifdef VT_MATRIX_MACHINES
#define VT_FOR_MACHINES(M)                         \
  M(any, , 16)                                     \
  M(avx2, __attribute__((target("avx2,fma"))), 32) \
  M(avx512, __attribute__((target("avx512f,avx512dq,avx2,fma"))), 64)
#define VT_MACHINE_CHOICE(table, E)                                       \
  (machine_level() == MachineLevel::avx512 ? simd_loops::avx512::table<E> \
   : machine_level() == MachineLevel::avx2 ? simd_loops::avx2::table<E>   \
                                           : simd_loops::any::table<E>)
#else
#define VT_FOR_MACHINES(M) M(any, , 16)
#define VT_MACHINE_CHOICE(table, E) (simd_loops::any::table<E>)
#endif

}  // namespace simd_loops
}  // namespace vt::detail::simd_rows
