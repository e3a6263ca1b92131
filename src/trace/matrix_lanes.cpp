// The inner loops of linear algebra, written once for any width of vectors and compiled for several machines.
#include "matrix_lanes.hpp"

#include <algorithm>

#include <vt/small_vec.hpp>

#include "recycled.hpp"

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define VT_MATRIX_MACHINES 1
#endif

namespace vt::detail::matrix_lanes {

namespace lane_loops {

struct Two {
  typedef double type __attribute__((vector_size(16), aligned(8), may_alias));
};
struct Four {
  typedef double type __attribute__((vector_size(32), aligned(8), may_alias));
};
struct Eight {
  typedef double type __attribute__((vector_size(64), aligned(8), may_alias));
};

// Always inlined into functions compiled for one machine each, so that no vector is ever handed from one to the other.
#define VT_LANE_LOOP \
  template <class L> \
  inline __attribute__((always_inline))
template <class L>
inline constexpr Index width_of = static_cast<Index>(sizeof(typename L::type) / sizeof(double));
VT_LANE_LOOP const typename L::type& at(const double* p) { return *reinterpret_cast<const typename L::type*>(p); }
VT_LANE_LOOP typename L::type& at(double* p) { return *reinterpret_cast<typename L::type*>(p); }

/// By halves.
VT_LANE_LOOP double sum_of(const typename L::type& a) {
  if constexpr (width_of<L> == 8) {
    const Four::type half = __builtin_shufflevector(a, a, 0, 1, 2, 3) + __builtin_shufflevector(a, a, 4, 5, 6, 7);
    return sum_of<Four>(half);
  } else if constexpr (width_of<L> == 4) {
    const Two::type half = __builtin_shufflevector(a, a, 0, 1) + __builtin_shufflevector(a, a, 2, 3);
    return half[0] + half[1];
  } else {
    return a[0] + a[1];
  }
}
VT_LANE_LOOP double dot(const double* x, const double* y, Index n) {
  using V = typename L::type;
  constexpr Index w = width_of<L>;
  V a{}, b{}, c{}, d{};
  Index i = 0;
  for (; i + 4 * w <= n; i += 4 * w) {
    a += at<L>(x + i) * at<L>(y + i);
    b += at<L>(x + i + w) * at<L>(y + i + w);
    c += at<L>(x + i + 2 * w) * at<L>(y + i + 2 * w);
    d += at<L>(x + i + 3 * w) * at<L>(y + i + 3 * w);
  }
  for (; i + w <= n; i += w) a += at<L>(x + i) * at<L>(y + i);
  a = (a + b) + (c + d);
  double sum = sum_of<L>(a);
  if constexpr (w > 4) {  // rows of small matrices are short
    if (i + 4 <= n) sum += sum_of<Four>(at<Four>(x + i) * at<Four>(y + i)), i += 4;
  }
  for (; i < n; ++i) sum += x[i] * y[i];
  return sum;
}
VT_LANE_LOOP void add_to(double* y, double a, const double* x, Index n) {
  constexpr Index w = width_of<L>;
  Index i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    at<L>(y + i) += a * at<L>(x + i);
    at<L>(y + i + w) += a * at<L>(x + i + w);
  }
  for (; i + w <= n; i += w) at<L>(y + i) += a * at<L>(x + i);
  if constexpr (w > 4) {
    if (i + 4 <= n) at<Four>(y + i) += a * at<Four>(x + i), i += 4;
  }
  for (; i < n; ++i) y[i] += a * x[i];
}
VT_LANE_LOOP double add_two(double* y, double a, const double* x, double b, const double* z, const double* t, Index n) {
  using V = typename L::type;
  constexpr Index w = width_of<L>;
  V one{}, two{};
  Index i = 0;
  for (; i + 2 * w <= n; i += 2 * w) {
    const V u = at<L>(y + i) + (a * at<L>(x + i) + b * at<L>(z + i));
    const V v = at<L>(y + i + w) + (a * at<L>(x + i + w) + b * at<L>(z + i + w));
    at<L>(y + i) = u;
    at<L>(y + i + w) = v;
    one += u * at<L>(t + i);
    two += v * at<L>(t + i + w);
  }
  if (i + w <= n) {
    const V u = at<L>(y + i) + (a * at<L>(x + i) + b * at<L>(z + i));
    at<L>(y + i) = u;
    one += u * at<L>(t + i);
    i += w;
  }
  one += two;
  double sum = sum_of<L>(one);
  if constexpr (w > 4) {
    if (i + 4 <= n) {
      const Four::type u = at<Four>(y + i) + (a * at<Four>(x + i) + b * at<Four>(z + i));
      at<Four>(y + i) = u;
      sum += sum_of<Four>(u * at<Four>(t + i));
      i += 4;
    }
  }
  for (; i < n; ++i) {
    y[i] += a * x[i] + b * z[i];
    sum += y[i] * t[i];
  }
  return sum;
}
VT_LANE_LOOP void add_on(double* y, double a, const double* x, double* z, double b, Index n) {
  using V = typename L::type;
  constexpr Index w = width_of<L>;
  Index i = 0;
  for (; i + w <= n; i += w) {
    const V u = at<L>(y + i) + a * at<L>(x + i);
    at<L>(y + i) = u;
    at<L>(z + i) += b * u;
  }
  for (; i < n; ++i) {
    y[i] += a * x[i];
    z[i] += b * y[i];
  }
}
/// What two rotations share stays in registers, a few vectors of it side by side.
VT_LANE_LOOP void rotate(double* rows, Index width, const Rotation* r, Index count, bool down, Index n) {
  using V = typename L::type;
  constexpr Index w = width_of<L>;
  // The row that is shared is y going down and x going up: then c and s exchange places, and s its sign.
  const double sign = down ? 1 : -1;
  const auto own = [&](const Rotation& at) __attribute__((always_inline)) { return rows + (down ? at.i : at.j) * width; };
  const auto shared = [&](const Rotation& at) __attribute__((always_inline)) { return rows + (down ? at.j : at.i) * width; };
  double *first = shared(r[0]), *last = own(r[count - 1]);
  Index k = 0;
  for (; k + 4 * w <= n; k += 4 * w) {
    V y0 = at<L>(first + k), y1 = at<L>(first + k + w), y2 = at<L>(first + k + 2 * w), y3 = at<L>(first + k + 3 * w);
    for (Index p = 0; p < count; ++p) {
      const double c = r[p].c, s = sign * r[p].s;
      const double* x = own(r[p]) + k;
      double* out = shared(r[p]) + k;
      const V x0 = at<L>(x), x1 = at<L>(x + w), x2 = at<L>(x + 2 * w), x3 = at<L>(x + 3 * w);
      at<L>(out) = s * x0 + c * y0, at<L>(out + w) = s * x1 + c * y1;
      at<L>(out + 2 * w) = s * x2 + c * y2, at<L>(out + 3 * w) = s * x3 + c * y3;
      y0 = c * x0 - s * y0, y1 = c * x1 - s * y1, y2 = c * x2 - s * y2, y3 = c * x3 - s * y3;
    }
    at<L>(last + k) = y0, at<L>(last + k + w) = y1, at<L>(last + k + 2 * w) = y2, at<L>(last + k + 3 * w) = y3;
  }
  for (; k + w <= n; k += w) {
    V y = at<L>(first + k);
    for (Index p = 0; p < count; ++p) {
      const double c = r[p].c, s = sign * r[p].s;
      const V x = at<L>(own(r[p]) + k);
      at<L>(shared(r[p]) + k) = s * x + c * y;
      y = c * x - s * y;
    }
    at<L>(last + k) = y;
  }
  if constexpr (w > 4) {
    if (k + 4 <= n) {
      Four::type y = at<Four>(first + k);
      for (Index p = 0; p < count; ++p) {
        const double c = r[p].c, s = sign * r[p].s;
        const Four::type x = at<Four>(own(r[p]) + k);
        at<Four>(shared(r[p]) + k) = s * x + c * y;
        y = c * x - s * y;
      }
      at<Four>(last + k) = y;
      k += 4;
    }
  }
  for (; k < n; ++k) {
    double y = first[k];
    for (Index p = 0; p < count; ++p) {
      const double c = r[p].c, s = sign * r[p].s, x = own(r[p])[k];
      shared(r[p])[k] = s * x + c * y;
      y = c * x - s * y;
    }
    last[k] = y;
  }
}
VT_LANE_LOOP Index largest(const double* x, Index n) {
  using V = typename L::type;
  constexpr Index w = width_of<L>;
  double most = x[0] < 0 ? -x[0] : x[0];
  Index i = 0;
  if (n >= w) {
    V lanes = V{} + most;
    for (; i + w <= n; i += w) {
      const V u = at<L>(x + i), v = u < 0 ? -u : u;
      lanes = v > lanes ? v : lanes;
    }
    for (Index l = 0; l < w; ++l) most = lanes[l] > most ? lanes[l] : most;
  }
  for (; i < n; ++i) {
    const double v = x[i] < 0 ? -x[i] : x[i];
    most = v > most ? v : most;
  }
  for (i = 0; i < n; ++i)
    if (x[i] == most || x[i] == -most) return i;
  return 0;  // NaN comes first
}
VT_LANE_LOOP void divide(double* x, double a, Index n) {
  constexpr Index w = width_of<L>;
  Index i = 0;
  for (; i + w <= n; i += w) at<L>(x + i) /= a;
  for (; i < n; ++i) x[i] /= a;
}
/// Squares of 4 × 4 in registers.
VT_LANE_LOOP void turn(const double* from, Index from_step, Index m, Index n, double* to, Index to_step) {
  Index i = 0;
  if constexpr (width_of<L> >= 4) {
    using V = Four::type;
    for (; i + 4 <= m; i += 4) {
      const double* row = from + i * from_step;
      double* out = to + i;
      Index j = 0;
      for (; j + 4 <= n; j += 4) {
        const V r0 = at<Four>(row + j), r1 = at<Four>(row + from_step + j), r2 = at<Four>(row + 2 * from_step + j),
                r3 = at<Four>(row + 3 * from_step + j);
        const V t0 = __builtin_shufflevector(r0, r1, 0, 4, 2, 6), t1 = __builtin_shufflevector(r0, r1, 1, 5, 3, 7),
                t2 = __builtin_shufflevector(r2, r3, 0, 4, 2, 6), t3 = __builtin_shufflevector(r2, r3, 1, 5, 3, 7);
        at<Four>(out + j * to_step) = __builtin_shufflevector(t0, t2, 0, 1, 4, 5);
        at<Four>(out + (j + 1) * to_step) = __builtin_shufflevector(t1, t3, 0, 1, 4, 5);
        at<Four>(out + (j + 2) * to_step) = __builtin_shufflevector(t0, t2, 2, 3, 6, 7);
        at<Four>(out + (j + 3) * to_step) = __builtin_shufflevector(t1, t3, 2, 3, 6, 7);
      }
      for (; j < n; ++j)
        for (Index q = 0; q < 4; ++q) out[j * to_step + q] = row[q * from_step + j];
    }
  }
  for (; i < m; ++i)
    for (Index j = 0; j < n; ++j) to[j * to_step + i] = from[i * from_step + j];
}

/// Rows and vectors of a tile of a product, all of which stays in registers.
inline constexpr Index tile_rows = 4, tile_vectors = 3;

/// `out` (tile_rows rows, `step` apart) += sign · a b, of packed panels.
VT_LANE_LOOP void tile(const double* a, const double* b, Index k, double sign, double* out, Index step) {
  using V = typename L::type;
  constexpr Index w = width_of<L>;
  V c00{}, c01{}, c02{}, c10{}, c11{}, c12{}, c20{}, c21{}, c22{}, c30{}, c31{}, c32{};
  for (Index p = 0; p < k; ++p, a += tile_rows, b += tile_vectors * w) {
    const V x = at<L>(b), y = at<L>(b + w), z = at<L>(b + 2 * w);
    const double a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3];
    c00 += a0 * x, c01 += a0 * y, c02 += a0 * z;
    c10 += a1 * x, c11 += a1 * y, c12 += a1 * z;
    c20 += a2 * x, c21 += a2 * y, c22 += a2 * z;
    c30 += a3 * x, c31 += a3 * y, c32 += a3 * z;
  }
  const auto put = [&](double* row, const V& x, const V& y, const V& z) __attribute__((always_inline)) {
    at<L>(row) += sign * x;
    at<L>(row + w) += sign * y;
    at<L>(row + 2 * w) += sign * z;
  };
  put(out, c00, c01, c02);
  put(out + step, c10, c11, c12);
  put(out + 2 * step, c20, c21, c22);
  put(out + 3 * step, c30, c31, c32);
}
/// All tiles of a block: `a` in panels of tile_rows rows, `b` in panels of a tile's columns, `k` long.
VT_LANE_LOOP void block(const double* a, const double* b, Index m, Index n, Index k, double sign, double* c, Index step) {
  constexpr Index columns = tile_vectors * width_of<L>;
  for (Index j = 0; j < n; j += columns)
    for (Index i = 0; i < m; i += tile_rows) {
      const double *pa = a + i * k, *pb = b + j * k;
      if (i + tile_rows <= m && j + columns <= n) {
        tile<L>(pa, pb, k, sign, c + i * step + j, step);
        continue;
      }
      double edge[tile_rows * columns] = {};
      tile<L>(pa, pb, k, sign, edge, columns);
      for (Index r = 0; r < std::min(tile_rows, m - i); ++r)
        for (Index q = 0; q < std::min(columns, n - j); ++q) c[(i + r) * step + j + q] += edge[r * columns + q];
    }
}

struct Machine {
  double (*dot)(const double*, const double*, Index);
  void (*add_to)(double*, double, const double*, Index);
  double (*add_two)(double*, double, const double*, double, const double*, const double*, Index);
  void (*add_on)(double*, double, const double*, double*, double, Index);
  void (*rotate)(double*, Index, const Rotation*, Index, bool, Index);
  Index (*largest)(const double*, Index);
  void (*divide)(double*, double, Index);
  void (*turn)(const double*, Index, Index, Index, double*, Index);
  void (*block)(const double*, const double*, Index, Index, Index, double, double*, Index);
  Index columns;  ///< of a tile
};

#define VT_MACHINE_LOOPS(name, target, L)                                                                                             \
  namespace name {                                                                                                                    \
  target double dot(const double* x, const double* y, Index n) { return lane_loops::dot<L>(x, y, n); }                                \
  target void add_to(double* y, double a, const double* x, Index n) { lane_loops::add_to<L>(y, a, x, n); }                            \
  target double add_two(double* y, double a, const double* x, double b, const double* z, const double* t, Index n) {                  \
    return lane_loops::add_two<L>(y, a, x, b, z, t, n);                                                                               \
  }                                                                                                                                   \
  target void add_on(double* y, double a, const double* x, double* z, double b, Index n) { lane_loops::add_on<L>(y, a, x, z, b, n); } \
  target void rotate(double* rows, Index width, const Rotation* r, Index count, bool down, Index n) {                                 \
    lane_loops::rotate<L>(rows, width, r, count, down, n);                                                                            \
  }                                                                                                                                   \
  target Index largest(const double* x, Index n) { return lane_loops::largest<L>(x, n); }                                             \
  target void divide(double* x, double a, Index n) { lane_loops::divide<L>(x, a, n); }                                                \
  target void turn(const double* from, Index from_step, Index m, Index n, double* to, Index to_step) {                                \
    lane_loops::turn<L>(from, from_step, m, n, to, to_step);                                                                          \
  }                                                                                                                                   \
  target void block(const double* a, const double* b, Index m, Index n, Index k, double sign, double* c, Index step) {                \
    lane_loops::block<L>(a, b, m, n, k, sign, c, step);                                                                               \
  }                                                                                                                                   \
  inline constexpr Machine machine = {dot, add_to, add_two, add_on, rotate, largest, divide, turn, block, tile_vectors* width_of<L>}; \
  }

VT_MACHINE_LOOPS(any, , Two)
#ifdef VT_MATRIX_MACHINES
VT_MACHINE_LOOPS(avx2, __attribute__((target("avx2,fma"))), Four)
VT_MACHINE_LOOPS(avx512, __attribute__((target("avx512f,avx512dq,avx2,fma"))), Eight)
#endif

#undef VT_MACHINE_LOOPS
#undef VT_LANE_LOOP

const Machine& machine() {
#ifdef VT_MATRIX_MACHINES
  static const Machine& best = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") ? avx512::machine
                               : __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")       ? avx2::machine
                                                                                                       : any::machine;
  return best;
#else
  return any::machine;
#endif
}

/// Panels of `lines` lines, each padded to a whole panel: panel[p][q] for place p along k and line q.
void pack(const View<double>& v, bool lines_are_rows, Index from, Index count, Index k_from, Index k, Index lines, double* to) {
  const Index along = lines_are_rows ? v.column : v.row, across = lines_are_rows ? v.row : v.column;
  const double* data = v.data + from * across + k_from * along;
  for (Index first = 0; first < count; first += lines) {
    const Index whole = std::min(lines, count - first);
    const double* panel = data + first * across;
    if (across == 1) {
      for (Index p = 0; p < k; ++p, to += lines) {
        for (Index q = 0; q < whole; ++q) to[q] = panel[p * along + q];
        for (Index q = whole; q < lines; ++q) to[q] = 0;
      }
      continue;
    }
    if (along == 1) {
      machine().turn(panel, across, whole, k, to, lines);
    } else {
      for (Index q = 0; q < whole; ++q)
        for (Index p = 0; p < k; ++p) to[p * lines + q] = panel[q * across + p * along];
    }
    for (Index p = 0; p < k && whole < lines; ++p) std::fill(to + p * lines + whole, to + (p + 1) * lines, 0.0);
    to += k * lines;
  }
}

}  // namespace lane_loops

double dot(const double* x, const double* y, Index n) { return lane_loops::machine().dot(x, y, n); }
void add_to(double* y, double a, const double* x, Index n) { lane_loops::machine().add_to(y, a, x, n); }
double add_two(double* y, double a, const double* x, double b, const double* z, const double* w, Index n) {
  return lane_loops::machine().add_two(y, a, x, b, z, w, n);
}
void add_on(double* y, double a, const double* x, double* z, double b, Index n) { lane_loops::machine().add_on(y, a, x, z, b, n); }
void rotate(double* rows, Index width, const Rotation* rotations, Index count, bool down, Index n) {
  if (count > 0) lane_loops::machine().rotate(rows, width, rotations, count, down, n);
}
Index largest(const double* x, Index n) { return lane_loops::machine().largest(x, n); }
void divide(double* x, double a, Index n) { lane_loops::machine().divide(x, a, n); }
void turn(const double* from, Index from_step, Index m, Index n, double* to, Index to_step) {
  lane_loops::machine().turn(from, from_step, m, n, to, to_step);
}

Index largest(const Complex* x, Index n) {
  Index at = 0;
  double most = size(x[0]);
  for (Index i = 1; i < n; ++i)
    if (const double s = size(x[i]); s > most) most = s, at = i;
  return at;
}
void divide(Complex* x, Complex a, Index n) {
  for (Index i = 0; i < n; ++i) x[i] = x[i] / a;
}
void turn(const Complex* from, Index from_step, Index m, Index n, Complex* to, Index to_step) {
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) to[j * to_step + i] = from[i * from_step + j];
}

Complex dot(const Complex* x, const Complex* y, Index n) {
  double re = 0, im = 0;
  for (Index i = 0; i < n; ++i) {
    re += x[i].re * y[i].re - x[i].im * y[i].im;
    im += x[i].re * y[i].im + x[i].im * y[i].re;
  }
  return {re, im};
}
void add_to(Complex* y, Complex a, const Complex* x, Index n) {
  for (Index i = 0; i < n; ++i) {
    y[i].re += a.re * x[i].re - a.im * x[i].im;
    y[i].im += a.re * x[i].im + a.im * x[i].re;
  }
}
Complex add_two(Complex* y, Complex a, const Complex* x, Complex b, const Complex* z, const Complex* w, Index n) {
  add_to(y, a, x, n);
  add_to(y, b, z, n);
  return dot(y, w, n);
}
void add_on(Complex* y, Complex a, const Complex* x, Complex* z, Complex b, Index n) {
  add_to(y, a, x, n);
  add_to(z, b, y, n);
}

void multiply_add(double* c, Index step, double sign, View<double> a, View<double> b, Index m, Index n, Index k) {
  constexpr Index most_rows = 96, most_columns = 480, most_k = 256;  // panels of a in the first cache, of b in the second
  const lane_loops::Machine& machine = lane_loops::machine();
  if (m <= 0 || n <= 0 || k <= 0) return;
  const auto whole = [](Index x, Index unit) { return (x + unit - 1) / unit * unit; };
  RecycledVec<double> room;
  const Index k_room = std::min(k, most_k), a_room = whole(std::min(m, most_rows), lane_loops::tile_rows) * k_room;
  room.resize(static_cast<std::size_t>(a_room + whole(std::min(n, most_columns), machine.columns) * k_room));
  double *pa = room.data(), *pb = pa + a_room;
  for (Index j = 0; j < n; j += most_columns) {
    const Index columns = std::min(most_columns, n - j);
    for (Index p = 0; p < k; p += most_k) {
      const Index length = std::min(most_k, k - p);
      lane_loops::pack(b, false, j, columns, p, length, machine.columns, pb);
      for (Index i = 0; i < m; i += most_rows) {
        const Index rows = std::min(most_rows, m - i);
        lane_loops::pack(a, true, i, rows, p, length, lane_loops::tile_rows, pa);
        machine.block(pa, pb, rows, columns, length, sign, c + i * step + j, step);
      }
    }
  }
}
void multiply_add(Complex* c, Index step, double sign, View<Complex> a, View<Complex> b, Index m, Index n, Index k) {
  RecycledVec<Complex> room;
  room.resize(static_cast<std::size_t>(n));
  for (Index p = 0; p < k; ++p) {
    for (Index j = 0; j < n; ++j) {
      const Complex x = b.data[p * b.row + j * b.column];
      room[static_cast<std::size_t>(j)] = b.conjugate ? conj(x) : x;
    }
    for (Index i = 0; i < m; ++i) {
      const Complex x = a.data[i * a.row + p * a.column];
      add_to(c + i * step, Complex(sign) * (a.conjugate ? conj(x) : x), room.data(), n);
    }
  }
}

}  // namespace vt::detail::matrix_lanes
