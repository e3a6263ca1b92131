// Matrix products in memory and triangular substitution, of any shape without padding: where
// factorisations spend most of their time.
#include <algorithm>

#include <vt/detail/small_vec.hpp>

#include "../base/recycled.hpp"
#include "simd_rows.hpp"

namespace vt::detail::simd_rows {

namespace simd_loops {

/// A tile of rows × (vectors · width) sums in registers: c += sign · a b. Rows of b are contiguous,
/// a lies anyhow.
template <class L, int rows, int vectors>
inline __attribute__((always_inline)) void tile(const View<Element<L>>& a, const Element<L>* b,
                                                Index b_step, Index k, Element<L> sign,
                                                Element<L>* c, Index step) {
  using V = typename L::type;
  using E = Element<L>;
  constexpr Index w = L::width;
  V c00{}, c01{}, c02{}, c10{}, c11{}, c12{}, c20{}, c21{}, c22{}, c30{}, c31{}, c32{};
  const E* a0 = a.data;
  const Index row = a.row, column = a.column;
  for (Index p = 0; p < k; ++p, a0 += column, b += b_step) {
    const V x = VT_AT(L, b);
    V y{}, z{};
    if constexpr (vectors > 1) y = VT_AT(L, b + w);
    if constexpr (vectors > 2) z = VT_AT(L, b + 2 * w);
    const E f0 = a0[0];
    c00 += f0 * x;
    if constexpr (vectors > 1) c01 += f0 * y;
    if constexpr (vectors > 2) c02 += f0 * z;
    if constexpr (rows > 1) {
      const E f1 = a0[row];
      c10 += f1 * x;
      if constexpr (vectors > 1) c11 += f1 * y;
      if constexpr (vectors > 2) c12 += f1 * z;
    }
    if constexpr (rows > 2) {
      const E f2 = a0[2 * row], f3 = a0[3 * row];
      c20 += f2 * x, c30 += f3 * x;
      if constexpr (vectors > 1) c21 += f2 * y, c31 += f3 * y;
      if constexpr (vectors > 2) c22 += f2 * z, c32 += f3 * z;
    }
  }
  const auto put = [sign](E* to, const V& x, const V& y, const V& z)
                       __attribute__((always_inline)) {
                         VT_AT(L, to) += sign * x;
                         if constexpr (vectors > 1) VT_AT(L, to + w) += sign * y;
                         if constexpr (vectors > 2) VT_AT(L, to + 2 * w) += sign * z;
                       };
  put(c, c00, c01, c02);
  if constexpr (rows > 1) put(c + step, c10, c11, c12);
  if constexpr (rows > 2) put(c + 2 * step, c20, c21, c22), put(c + 3 * step, c30, c31, c32);
}
/// Tiles of so many columns, one below the other.
template <class L, int vectors>
inline __attribute__((always_inline)) void column_of_tiles(View<Element<L>> a, const Element<L>* b,
                                                           Index b_step, Index m, Index k,
                                                           Element<L> sign, Element<L>* c,
                                                           Index step) {
  for (; m >= 4; m -= 4, a.data += 4 * a.row, c += 4 * step)
    tile<L, 4, vectors>(a, b, b_step, k, sign, c, step);
  for (; m >= 2; m -= 2, a.data += 2 * a.row, c += 2 * step)
    tile<L, 2, vectors>(a, b, b_step, k, sign, c, step);
  if (m > 0) tile<L, 1, vectors>(a, b, b_step, k, sign, c, step);
}
/// The widest vectors first, and narrower ones for what is left.
VT_SIMD_LOOP void narrow_tiles(const View<Element<L>>& a, const Element<L>* b, Index b_step,
                               Index m, Index n, Index k, Element<L> sign, Element<L>* c,
                               Index step) {
  constexpr Index w = L::width;
  for (; n >= w; n -= w, b += w, c += w) column_of_tiles<L, 1>(a, b, b_step, m, k, sign, c, step);
  if constexpr (w > 1)
    if (n > 0) narrow_tiles<typename L::Half>(a, b, b_step, m, n, k, sign, c, step);
}
/// Columns in groups of three vectors; `b_group`: from one group of b to the next.
VT_SIMD_LOOP void tiles(const View<Element<L>>& a, const Element<L>* b, Index b_step, Index b_group,
                        Index m, Index n, Index k, Element<L> sign, Element<L>* c, Index step) {
  constexpr Index w = L::width;
  for (; n >= 3 * w; n -= 3 * w, b += b_group, c += 3 * w)
    column_of_tiles<L, 3>(a, b, b_step, m, k, sign, c, step);
  if (n >= 2 * w) {
    column_of_tiles<L, 2>(a, b, b_step, m, k, sign, c, step);
    n -= 2 * w, b += 2 * w, c += 2 * w;
  }
  narrow_tiles<L>(a, b, b_step, m, n, k, sign, c, step);
}
VT_SIMD_LOOP void substitute(const Element<L>* t, Index rows, Element<L>* b, Index step, Index n) {
  using V = typename L::type;
  constexpr Index w = L::width;
  Index i = 0;
  if (rows == 4) {
    Element<L>*q = b + step, *r = q + step, *s = r + step;
    for (; i + w <= n; i += w) {
      const V x = VT_AT(L, b + i) * t[0], y = (VT_AT(L, q + i) - t[4] * x) * t[5];
      const V z = (VT_AT(L, r + i) - t[8] * x - t[9] * y) * t[10];
      VT_AT(L, s + i) = (VT_AT(L, s + i) - t[12] * x - t[13] * y - t[14] * z) * t[15];
      VT_AT(L, b + i) = x, VT_AT(L, q + i) = y, VT_AT(L, r + i) = z;
    }
  } else {
    for (; i + w <= n; i += w)
      for (Index r = 0; r < rows; ++r) {
        V x = VT_AT(L, b + r * step + i);
        for (Index q = 0; q < r; ++q) x -= t[4 * r + q] * VT_AT(L, b + q * step + i);
        VT_AT(L, b + r * step + i) = x * t[5 * r];
      }
  }
  if constexpr (w > 1)
    if (i < n) substitute<typename L::Half>(t, rows, b + i, step, n - i);
}

template <class E>
struct ProductLoops {
  void (*tiles)(const View<E>&, const E*, Index, Index, Index, Index, Index, E, E*, Index);
  void (*substitute)(const E*, Index, E*, Index, Index);
  Index columns;  ///< of a group
};

#define VT_MACHINE_LOOPS(name, target, bytes)                                                    \
  namespace name {                                                                               \
  template <class E>                                                                             \
  target void tiles(const View<E>& a, const E* b, Index b_step, Index b_group, Index m, Index n, \
                    Index k, E sign, E* c, Index step) {                                         \
    simd_loops::tiles<SimdLanes<E, bytes>>(a, b, b_step, b_group, m, n, k, sign, c, step);       \
  }                                                                                              \
  template <class E>                                                                             \
  target void substitute(const E* t, Index rows, E* b, Index step, Index n) {                    \
    simd_loops::substitute<SimdLanes<E, bytes>>(t, rows, b, step, n);                            \
  }                                                                                              \
  template <class E>                                                                             \
  inline constexpr ProductLoops<E> product_loops = {tiles<E>, substitute<E>,                     \
                                                    3 * SimdLanes<E, bytes>::width};             \
  }
VT_FOR_MACHINES(VT_MACHINE_LOOPS)
#undef VT_MACHINE_LOOPS

/// `lines` lines (rows of a or columns of b) side by side: to[group][p][q] for place p along k and
/// line q of a group.
template <class E>
void pack(const E* from, Index across, Index along, Index count, Index k, Index lines, E* to) {
  for (Index first = 0; first < count; first += lines, to += k * lines) {
    const Index whole = std::min(lines, count - first);
    const E* group = from + first * across;
    if (across == 1)
      for (Index p = 0; p < k; ++p) std::copy_n(group + p * along, whole, to + p * lines);
    else if (along == 1) simd_rows::turn(group, across, whole, k, to, lines);
    else
      for (Index q = 0; q < whole; ++q)
        for (Index p = 0; p < k; ++p) to[p * lines + q] = group[q * across + p * along];
  }
}

template <class E>
void multiply_add(E* c, Index step, E sign, View<E> a, View<E> b, Index m, Index n, Index k) {
  // groups of b stay in the first cache, b in the second
  constexpr Index most_rows = 96, most_k = 256;
  constexpr Index most_columns = static_cast<Index>(480 * sizeof(double) / sizeof(E)),
                  few_rows = 16, whole_bytes = 1 << 18;
  const ProductLoops<E>& machine = VT_MACHINE_CHOICE(product_loops, E);
  if (m <= 0 || n <= 0 || k <= 0) return;
  const auto bytes = [](Index elements) { return elements * static_cast<Index>(sizeof(E)); };
  // Rows that lie 1 KiB apart meet in few places of the cache.
  if (b.column == 1 && (m <= few_rows || (bytes(n * k) <= whole_bytes && bytes(b.row) % 1024 != 0)))
    return machine.tiles(a, b.data, b.row, machine.columns, m, n, k, sign, c, step);
  const auto whole = [](Index x, Index unit) { return (x + unit - 1) / unit * unit; };
  const bool packs_a = a.column != 1 && n > few_rows && bytes(m * k) > whole_bytes / 4;
  RecycledVec<E> room;
  const Index k_room = std::min(k, most_k),
              a_room = packs_a ? whole(std::min(m, most_rows), 4) * k_room : 0;
  room.resize(a_room + whole(std::min(n, most_columns), machine.columns) * k_room);
  E *pa = room.data(), *pb = pa + a_room;
  for (Index j = 0; j < n; j += most_columns)
    for (Index p = 0; p < k; p += most_k) {
      const Index columns = std::min(most_columns, n - j), length = std::min(most_k, k - p);
      pack(b.data + j * b.column + p * b.row, b.column, b.row, columns, length, machine.columns,
           pb);
      for (Index i = 0; i < m; i += most_rows) {
        const Index rows = std::min(most_rows, m - i);
        const E* own = a.data + i * a.row + p * a.column;
        E* to = c + i * step + j;
        if (packs_a) pack(own, a.row, a.column, rows, length, Index(4), pa);
        // Packed rows come in groups of four.
        if (!packs_a)
          machine.tiles({own, a.row, a.column}, pb, machine.columns, machine.columns * length, rows,
                        columns, length, sign, to, step);
        else
          for (Index q = 0; q < columns; q += machine.columns)
            for (Index r = 0; r < rows; r += 4)
              machine.tiles({pa + r * length, 1, 4}, pb + q * length, machine.columns, 0,
                            std::min<Index>(4, rows - r), std::min(machine.columns, columns - q),
                            length, sign, to + r * step + q, step);
      }
    }
}

}  // namespace simd_loops

void multiply_add(float* c, Index step, double sign, View<float> a, View<float> b, Index m, Index n,
                  Index k) {
  simd_loops::multiply_add<float>(c, step, static_cast<float>(sign), a, b, m, n, k);
}
void multiply_add(double* c, Index step, double sign, View<double> a, View<double> b, Index m,
                  Index n, Index k) {
  simd_loops::multiply_add<double>(c, step, sign, a, b, m, n, k);
}
void substitute(const float* t, Index rows, float* b, Index step, Index n) {
  VT_MACHINE_CHOICE(product_loops, float).substitute(t, rows, b, step, n);
}
void substitute(const double* t, Index rows, double* b, Index step, Index n) {
  VT_MACHINE_CHOICE(product_loops, double).substitute(t, rows, b, step, n);
}

}  // namespace vt::detail::simd_rows
