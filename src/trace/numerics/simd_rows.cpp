// The inner loops of linear algebra, written once for any vector width and compiled for several
// machines.
#include "simd_rows.hpp"

#include <algorithm>

namespace vt::detail::simd_rows {

namespace simd_loops {

VT_SIMD_LOOP Element<L> dot_rest(const Element<L>* x, const Element<L>* y, Index i, Index n) {
  if constexpr (L::width == 1) {
    Element<L> sum = 0;
    for (; i < n; ++i) sum += x[i] * y[i];
    return sum;
  } else {
    if (i + L::width > n) return dot_rest<typename L::Half>(x, y, i, n);
    const Element<L> sum = sum_of<L>(VT_AT(L, x + i) * VT_AT(L, y + i));
    return i + L::width == n ? sum : sum + dot_rest<typename L::Half>(x, y, i + L::width, n);
  }
}
VT_SIMD_LOOP Element<L> dot(const Element<L>* x, const Element<L>* y, Index n) {
  using V = typename L::type;
  constexpr Index w = L::width;
  Index i = 0;
  if (n < w) return dot_rest<typename L::Half>(x, y, i, n);
  V a{}, b{}, c{}, d{};
  for (; i + 4 * w <= n; i += 4 * w) {
    a += VT_AT(L, x + i) * VT_AT(L, y + i);
    b += VT_AT(L, x + i + w) * VT_AT(L, y + i + w);
    c += VT_AT(L, x + i + 2 * w) * VT_AT(L, y + i + 2 * w);
    d += VT_AT(L, x + i + 3 * w) * VT_AT(L, y + i + 3 * w);
  }
  for (; i + w <= n; i += w) a += VT_AT(L, x + i) * VT_AT(L, y + i);
  a = (a + b) + (c + d);
  const Element<L> sum = sum_of<L>(a);
  return i == n ? sum : sum + dot_rest<typename L::Half>(x, y, i, n);
}
VT_SIMD_LOOP void add_to(Element<L>* y, Element<L> a, const Element<L>* x, Index n) {
  constexpr Index w = L::width;
  Index i = 0;
  if constexpr (w > 4)
    for (; i + 2 * w <= n; i += 2 * w) {
      VT_AT(L, y + i) += a * VT_AT(L, x + i);
      VT_AT(L, y + i + w) += a * VT_AT(L, x + i + w);
    }
  for (; i + w <= n; i += w) VT_AT(L, y + i) += a * VT_AT(L, x + i);
  if constexpr (w > 1)
    if (i < n) add_to<typename L::Half>(y + i, a, x + i, n - i);
}
VT_SIMD_LOOP Element<L> add_two(Element<L>* y, Element<L> a, const Element<L>* x, Element<L> b,
                                const Element<L>* z, const Element<L>* t, Index n) {
  using V = typename L::type;
  constexpr Index w = L::width;
  V one{}, two{};
  Index i = 0;
  if constexpr (w > 1)
    for (; i + 2 * w <= n; i += 2 * w) {
      const V u = VT_AT(L, y + i) + (a * VT_AT(L, x + i) + b * VT_AT(L, z + i));
      const V v = VT_AT(L, y + i + w) + (a * VT_AT(L, x + i + w) + b * VT_AT(L, z + i + w));
      VT_AT(L, y + i) = u;
      VT_AT(L, y + i + w) = v;
      one += u * VT_AT(L, t + i);
      two += v * VT_AT(L, t + i + w);
    }
  for (; i + w <= n; i += w) {
    const V u = VT_AT(L, y + i) + (a * VT_AT(L, x + i) + b * VT_AT(L, z + i));
    VT_AT(L, y + i) = u;
    one += u * VT_AT(L, t + i);
  }
  one += two;
  const Element<L> sum = sum_of<L>(one);
  if constexpr (w > 1)
    if (i < n) return sum + add_two<typename L::Half>(y + i, a, x + i, b, z + i, t + i, n - i);
  return sum;
}
VT_SIMD_LOOP void add_on(Element<L>* y, Element<L> a, const Element<L>* x, Element<L>* z,
                         Element<L> b, Index n) {
  using V = typename L::type;
  constexpr Index w = L::width;
  Index i = 0;
  for (; i + w <= n; i += w) {
    const V u = VT_AT(L, y + i) + a * VT_AT(L, x + i);
    VT_AT(L, y + i) = u;
    VT_AT(L, z + i) += b * u;
  }
  if constexpr (w > 1)
    if (i < n) add_on<typename L::Half>(y + i, a, x + i, z + i, b, n - i);
}
/// Four rows at a time, which share what they read of x.
VT_SIMD_LOOP void row_dots(const Element<L>* a, Index step, Index rows, const Element<L>* x,
                           Index n, Element<L>* y) {
  using V = typename L::type;
  constexpr Index w = L::width;
  Index r = 0;
  for (; r + 4 <= rows; r += 4) {
    const Element<L>*p = a + r * step, *q = p + step, *s = q + step, *t = s + step;
    V one{}, two{}, three{}, four{};
    Index i = 0;
    for (; i + w <= n; i += w) {
      const V v = VT_AT(L, x + i);
      one += VT_AT(L, p + i) * v;
      two += VT_AT(L, q + i) * v;
      three += VT_AT(L, s + i) * v;
      four += VT_AT(L, t + i) * v;
    }
    y[r] = sum_of<L>(one), y[r + 1] = sum_of<L>(two), y[r + 2] = sum_of<L>(three),
    y[r + 3] = sum_of<L>(four);
    for (; i < n; ++i) {
      const Element<L> v = x[i];
      y[r] += p[i] * v, y[r + 1] += q[i] * v, y[r + 2] += s[i] * v, y[r + 3] += t[i] * v;
    }
  }
  for (; r < rows; ++r) y[r] = simd_loops::dot<L>(a + r * step, x, n);
}
VT_SIMD_LOOP void add_four(Element<L>* y, const Element<L>* f, const Element<L>* a, Index step,
                           Index n) {
  constexpr Index w = L::width;
  const Element<L> f0 = f[0], f1 = f[1], f2 = f[2], f3 = f[3];
  const Element<L>*p = a, *q = p + step, *s = q + step, *t = s + step;
  Index i = 0;
  for (; i + w <= n; i += w)
    VT_AT(L, y + i) = (VT_AT(L, y + i) + f0 * VT_AT(L, p + i) + f1 * VT_AT(L, q + i)) +
                      (f2 * VT_AT(L, s + i) + f3 * VT_AT(L, t + i));
  if constexpr (w > 1)
    if (i < n) add_four<typename L::Half>(y + i, f, a + i, step, n - i);
}
VT_SIMD_LOOP void add_rows(Element<L>* y, const Element<L>* factors, const Element<L>* a,
                           Index step, Index rows, Index n) {
  Index r = 0;
  for (; r + 4 <= rows; r += 4) add_four<L>(y, factors + r, a + r * step, step, n);
  for (; r < rows; ++r) simd_loops::add_to<L>(y, factors[r], a + r * step, n);
}
VT_SIMD_LOOP void add_to_four(Element<L>* a, Index step, Element<L> f0, Element<L> f1,
                              Element<L> f2, Element<L> f3, const Element<L>* x, Index n) {
  constexpr Index w = L::width;
  Element<L>*p = a, *q = p + step, *s = q + step, *t = s + step;
  Index i = 0;
  for (; i + w <= n; i += w) {
    const typename L::type v = VT_AT(L, x + i);
    VT_AT(L, p + i) += f0 * v;
    VT_AT(L, q + i) += f1 * v;
    VT_AT(L, s + i) += f2 * v;
    VT_AT(L, t + i) += f3 * v;
  }
  if constexpr (w > 1)
    if (i < n) add_to_four<typename L::Half>(a + i, step, f0, f1, f2, f3, x + i, n - i);
}
VT_SIMD_LOOP void add_to_rows(Element<L>* a, Index step, Index rows, const Element<L>* f,
                              Index f_step, const Element<L>* x, Index n) {
  Index r = 0;
  for (; r + 4 <= rows; r += 4, f += 4 * f_step)
    add_to_four<L>(a + r * step, step, f[0], f[f_step], f[2 * f_step], f[3 * f_step], x, n);
  for (; r < rows; ++r, f += f_step) simd_loops::add_to<L>(a + r * step, *f, x, n);
}
VT_SIMD_LOOP void reflect(Element<L>* x, Index step, const Element<L>* v, Element<L> factor,
                          Index rows, Index n) {
  using V = typename L::type;
  constexpr Index w = L::width;
  const Element<L> v1 = v[1], v2 = rows > 2 ? v[2] : 0;
  Element<L>*y = x + step, *z = rows > 2 ? y + step : y;
  Index i = 0;
  for (; i + w <= n; i += w) {
    const V a = VT_AT(L, x + i), b = VT_AT(L, y + i), c = VT_AT(L, z + i),
            t = factor * (a + v1 * b + v2 * c);
    VT_AT(L, x + i) = a - t;
    if (rows > 2) VT_AT(L, z + i) = c - v2 * t;
    VT_AT(L, y + i) = b - v1 * t;
  }
  if constexpr (w > 1)
    if (i < n) reflect<typename L::Half>(x + i, step, v, factor, rows, n - i);
}
/// What two rotations share stays in registers, a few vectors of it side by side.
VT_SIMD_LOOP void rotate(Element<L>* rows, Index width, const Rotation* r, Index count, bool down,
                         Index n) {
  using V = typename L::type;
  using E = Element<L>;
  constexpr Index w = L::width;
  // The row that is shared is y going down and x going up: then c and s exchange places, and s its
  // sign.
  const double sign = down ? 1 : -1;
  const auto own = [&](const Rotation& at) __attribute__((always_inline)) {
    return rows + (down ? at.i : at.j) * width;
  };
  const auto shared = [&](const Rotation& at) __attribute__((always_inline)) {
    return rows + (down ? at.j : at.i) * width;
  };
  E *first = shared(r[0]), *last = own(r[count - 1]);
  Index k = 0;
  if constexpr (w > 4 || sizeof(V) == 32)
    for (; k + 4 * w <= n; k += 4 * w) {
      V y0 = VT_AT(L, first + k), y1 = VT_AT(L, first + k + w), y2 = VT_AT(L, first + k + 2 * w),
        y3 = VT_AT(L, first + k + 3 * w);
      for (Index p = 0; p < count; ++p) {
        const E c = static_cast<E>(r[p].c), s = static_cast<E>(sign * r[p].s);
        const E* x = own(r[p]) + k;
        E* out = shared(r[p]) + k;
        const V x0 = VT_AT(L, x), x1 = VT_AT(L, x + w), x2 = VT_AT(L, x + 2 * w),
                x3 = VT_AT(L, x + 3 * w);
        VT_AT(L, out) = s * x0 + c * y0, VT_AT(L, out + w) = s * x1 + c * y1;
        VT_AT(L, out + 2 * w) = s * x2 + c * y2, VT_AT(L, out + 3 * w) = s * x3 + c * y3;
        y0 = c * x0 - s * y0, y1 = c * x1 - s * y1, y2 = c * x2 - s * y2, y3 = c * x3 - s * y3;
      }
      VT_AT(L, last + k) = y0, VT_AT(L, last + k + w) = y1, VT_AT(L, last + k + 2 * w) = y2,
                      VT_AT(L, last + k + 3 * w) = y3;
    }
  for (; k + w <= n; k += w) {
    V y = VT_AT(L, first + k);
    for (Index p = 0; p < count; ++p) {
      const E c = static_cast<E>(r[p].c), s = static_cast<E>(sign * r[p].s);
      const V x = VT_AT(L, own(r[p]) + k);
      VT_AT(L, shared(r[p]) + k) = s * x + c * y;
      y = c * x - s * y;
    }
    VT_AT(L, last + k) = y;
  }
  if constexpr (w > 1)
    if (k < n) rotate<typename L::Half>(rows + k, width, r, count, down, n - k);
}
VT_SIMD_LOOP Index largest(const Element<L>* x, Index n) {
  using V = typename L::type;
  using E = Element<L>;
  constexpr Index w = L::width;
  E most = x[0] < 0 ? -x[0] : x[0];
  Index i = 0;
  if (n >= w) {
    V simd_lanes = V{} + most;
    for (; i + w <= n; i += w) {
      const V u = VT_AT(L, x + i), v = u < 0 ? -u : u;
      simd_lanes = v > simd_lanes ? v : simd_lanes;
    }
    for (Index l = 0; l < w; ++l) most = simd_lanes[l] > most ? simd_lanes[l] : most;
  }
  for (; i < n; ++i) {
    const E v = x[i] < 0 ? -x[i] : x[i];
    most = v > most ? v : most;
  }
  for (i = 0; i < n; ++i)
    if (x[i] == most || x[i] == -most) return i;
  return 0;  // NaN comes first
}
/// Zeros times what is not finite are NaN, which stays in a sum.
VT_SIMD_LOOP Element<L> extent(const Element<L>* x, Index n) {
  using V = typename L::type;
  using E = Element<L>;
  constexpr Index w = L::width;
  E most = 0, zero = 0;
  Index i = 0;
  if (n >= 2 * w) {
    V one{}, two{}, a{}, b{};
    for (; i + 2 * w <= n; i += 2 * w) {
      const V u = VT_AT(L, x + i), v = VT_AT(L, x + i + w), p = u < 0 ? -u : u, q = v < 0 ? -v : v;
      one = p > one ? p : one;
      two = q > two ? q : two;
      a += E(0) * u;
      b += E(0) * v;
    }
    one = one > two ? one : two;
    zero = sum_of<L>(a + b);
    for (Index l = 0; l < w; ++l) most = one[l] > most ? one[l] : most;
  }
  for (; i < n; ++i) {
    const E v = x[i] < 0 ? -x[i] : x[i];
    most = v > most ? v : most;
    zero += 0 * x[i];
  }
  return most + zero;
}
VT_SIMD_LOOP void divide(Element<L>* x, Element<L> a, Index n) {
  Index i = 0;
  for (; i + L::width <= n; i += L::width) VT_AT(L, x + i) /= a;
  for (; i < n; ++i) x[i] /= a;
}
VT_SIMD_LOOP void multiply(Element<L>* x, Element<L> a, Index n) {
  Index i = 0;
  for (; i + L::width <= n; i += L::width) VT_AT(L, x + i) *= a;
  for (; i < n; ++i) x[i] *= a;
}
/// Squares of 4 × 4 in registers.
VT_SIMD_LOOP void turn(const Element<L>* from, Index from_step, Index m, Index n, Element<L>* to,
                       Index to_step) {
  Index i = 0;
  if constexpr (L::width >= 4) {
    using Four = typename L::Four;
    using V = typename Four::type;
    for (; i + 4 <= m; i += 4) {
      const Element<L>* row = from + i * from_step;
      Element<L>* out = to + i;
      Index j = 0;
      for (; j + 4 <= n; j += 4) {
        const V r0 = VT_AT(Four, row + j), r1 = VT_AT(Four, row + from_step + j),
                r2 = VT_AT(Four, row + 2 * from_step + j),
                r3 = VT_AT(Four, row + 3 * from_step + j);
        const V t0 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6),
                t1 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7),
                t2 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6),
                t3 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
        VT_AT(Four, out + j * to_step) = __builtin_shufflevector(t0, t2, 0, 1, 4, 5);
        VT_AT(Four, out + (j + 1) * to_step) = __builtin_shufflevector(t1, t3, 0, 1, 4, 5);
        VT_AT(Four, out + (j + 2) * to_step) = __builtin_shufflevector(t0, t2, 2, 3, 6, 7);
        VT_AT(Four, out + (j + 3) * to_step) = __builtin_shufflevector(t1, t3, 2, 3, 6, 7);
      }
      for (; j < n; ++j)
        for (Index q = 0; q < 4; ++q) out[j * to_step + q] = row[q * from_step + j];
    }
  }
  for (; i < m; ++i)
    for (Index j = 0; j < n; ++j) to[j * to_step + i] = from[i * from_step + j];
}
/// Square blocks of it and of its transpose at a time.
VT_SIMD_LOOP void symmetrize(Element<L>* a, Index n) {
  using E = Element<L>;
  constexpr Index square = 16, w = L::width;
  E block[square * square];
  for (Index top = 0; top < n; top += square)
    for (Index left = top; left < n; left += square) {
      const Index rows = std::min(square, n - top), columns = std::min(square, n - left);
      simd_loops::turn<L>(a + left * n + top, n, columns, rows, block, square);
      for (Index i = 0; i < rows; ++i) {
        E *row = a + (top + i) * n + left, *other = block + i * square;
        Index j = 0;
        for (; j + w <= columns; j += w)
          VT_AT(L, row + j) = VT_AT(L, other + j) =
              E(0.5) * VT_AT(L, row + j) + E(0.5) * VT_AT(L, other + j);
        for (; j < columns; ++j) row[j] = other[j] = E(0.5) * row[j] + E(0.5) * other[j];
      }
      if (left > top) simd_loops::turn<L>(block, square, rows, columns, a + left * n + top, n);
    }
}

#define VT_MACHINE_LOOPS(name, target, bytes)                                                    \
  namespace name {                                                                               \
  template <class E>                                                                             \
  target E dot(const E* x, const E* y, Index n) {                                                \
    return simd_loops::dot<SimdLanes<E, bytes>>(x, y, n);                                        \
  }                                                                                              \
  template <class E>                                                                             \
  target void add_to(E* y, E a, const E* x, Index n) {                                           \
    simd_loops::add_to<SimdLanes<E, bytes>>(y, a, x, n);                                         \
  }                                                                                              \
  template <class E>                                                                             \
  target E add_two(E* y, E a, const E* x, E b, const E* z, const E* t, Index n) {                \
    return simd_loops::add_two<SimdLanes<E, bytes>>(y, a, x, b, z, t, n);                        \
  }                                                                                              \
  template <class E>                                                                             \
  target void add_on(E* y, E a, const E* x, E* z, E b, Index n) {                                \
    simd_loops::add_on<SimdLanes<E, bytes>>(y, a, x, z, b, n);                                   \
  }                                                                                              \
  template <class E>                                                                             \
  target void row_dots(const E* a, Index step, Index rows, const E* x, Index n, E* y) {          \
    simd_loops::row_dots<SimdLanes<E, bytes>>(a, step, rows, x, n, y);                           \
  }                                                                                              \
  template <class E>                                                                             \
  target void add_rows(E* y, const E* factors, const E* a, Index step, Index rows, Index n) {    \
    simd_loops::add_rows<SimdLanes<E, bytes>>(y, factors, a, step, rows, n);                     \
  }                                                                                              \
  template <class E>                                                                             \
  target void add_to_rows(E* a, Index step, Index rows, const E* factors, Index factor_step,     \
                          const E* x, Index n) {                                                 \
    simd_loops::add_to_rows<SimdLanes<E, bytes>>(a, step, rows, factors, factor_step, x, n);     \
  }                                                                                              \
  template <class E>                                                                             \
  target void rotate(E* rows, Index width, const Rotation* r, Index count, bool down, Index n) { \
    simd_loops::rotate<SimdLanes<E, bytes>>(rows, width, r, count, down, n);                     \
  }                                                                                              \
  template <class E>                                                                             \
  target void reflect(E* x, Index step, const E* v, E factor, Index rows, Index n) {             \
    simd_loops::reflect<SimdLanes<E, bytes>>(x, step, v, factor, rows, n);                       \
  }                                                                                              \
  template <class E>                                                                             \
  target Index largest(const E* x, Index n) {                                                    \
    return simd_loops::largest<SimdLanes<E, bytes>>(x, n);                                       \
  }                                                                                              \
  template <class E>                                                                             \
  target E extent(const E* x, Index n) {                                                         \
    return simd_loops::extent<SimdLanes<E, bytes>>(x, n);                                        \
  }                                                                                              \
  template <class E>                                                                             \
  target void divide(E* x, E a, Index n) {                                                       \
    simd_loops::divide<SimdLanes<E, bytes>>(x, a, n);                                            \
  }                                                                                              \
  template <class E>                                                                             \
  target void multiply(E* x, E a, Index n) {                                                     \
    simd_loops::multiply<SimdLanes<E, bytes>>(x, a, n);                                          \
  }                                                                                              \
  template <class E>                                                                             \
  target void turn(const E* from, Index from_step, Index m, Index n, E* to, Index to_step) {     \
    simd_loops::turn<SimdLanes<E, bytes>>(from, from_step, m, n, to, to_step);                   \
  }                                                                                              \
  template <class E>                                                                             \
  target void symmetrize(E* a, Index n) {                                                        \
    simd_loops::symmetrize<SimdLanes<E, bytes>>(a, n);                                           \
  }                                                                                              \
  template <class E>                                                                             \
  inline constexpr simd_rows::Loops<E> loops = {                                                 \
      dot<E>,      add_to<E>,      add_two<E>,  add_on<E>,  row_dots<E>,                         \
      add_rows<E>, add_to_rows<E>, rotate<E>,   reflect<E>, largest<E>,                          \
      extent<E>,   divide<E>,      multiply<E>, turn<E>,    symmetrize<E>};                      \
  }
VT_FOR_MACHINES(VT_MACHINE_LOOPS)
#undef VT_MACHINE_LOOPS

}  // namespace simd_loops

template <class T>
const Loops<T>& loops() {
  return VT_MACHINE_CHOICE(loops, T);
}
template const Loops<float>& loops<float>();
template const Loops<double>& loops<double>();

}  // namespace vt::detail::simd_rows
