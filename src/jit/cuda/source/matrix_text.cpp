// The CUDA text of the algorithms on small matrices. A kernel says before it: `group` threads share
// a matrix (1, a warp, or a block), whose numbers are of type `num` and whose rows are an odd
// number apart, so that threads that walk rows meet no bank twice.
#include "matrix_text.hpp"

namespace vt::detail::cuda {

const std::string_view matrix_basics = R"cuda(
VT_FN void vt_group() { if (group == 32) __syncwarp(); else if (group > 32) __syncthreads(); }
VT_FN f32 vt_plus(f32 y, f32 a, f32 x) { return fmaf(a, x, y); }
VT_FN f64 vt_plus(f64 y, f64 a, f64 x) { return fma(a, x, y); }
VT_FN f32 vt_root(f32 x) { return sqrtf(x); }
VT_FN f64 vt_root(f64 x) { return sqrt(x); }
// Has the matrix only numbers?
template <int rows, int columns, int ld> VT_FN bool vt_finite(const num* a, int member) {
  i32 bad = 0;
  for (int i = member; i < rows * columns; i += group) {
    const num x = a[i / columns * ld + i % columns];
    if (x - x != (num)0) bad = 1;
  }
  return vt_reduce<group, vt_maximum>(bad) == 0;
}
VT_FN f64 vt_power_near_one(f64 most) {
  int exponent = 0;
  frexp(most, &exponent);
  return ldexp(1.0, exponent > 1000 ? -1000 : exponent < -1000 ? 1000 : -exponent);
}
// The power of two that brings the largest element near 1, so that squares neither overflow nor
// vanish; 0 if an element is not finite.
template <int rows, int columns, int ld> VT_FN f64 vt_scale_of(const f64* a, int member) {
  f64 most = 0;
  for (int i = member; i < rows * columns; i += group)
    most = vt_max(most, vt_abs(a[i / columns * ld + i % columns]));
  most = vt_reduce<group, vt_maximum>(most);
  if (!(most < VT_INF)) return 0;
  return most == 0 ? 1 : vt_power_near_one(most);
}
)cuda";

// Column after column; the diagonal keeps what its roots are taken of. False if the matrix is not
// positive definite.
const std::string_view matrix_cholesky = R"cuda(
template <int n, int ld> VT_FN bool vt_cholesky(num* a, int member) {
  for (int k = 0; k < n; ++k) {
    const num pivot = a[k * ld + k];
    if (!(pivot > 0 && pivot < (num)VT_INF)) return false;
    const num root = vt_root(pivot);
    for (int i = k + 1 + member; i < n; i += group) a[i * ld + k] = a[i * ld + k] / root;
    vt_group();
    for (int i = k + 1 + member; i < n; i += group) {
      const num x = -a[i * ld + k];
      for (int j = k + 1; j <= i; ++j) a[i * ld + j] = vt_plus(a[i * ld + j], x, a[j * ld + k]);
    }
    vt_group();
  }
  return true;
}
)cuda";

// The pivot is the first largest element. Row i of L U is row permutation[i] of a. All NaN, and
// nothing exchanged, if a is not finite.
const std::string_view matrix_lu = R"cuda(
template <int m, int n, int ld>
VT_FN void vt_lu(num* a, i32* pivots, i32* permutation, int member) {
  for (int i = member; i < m; i += group) permutation[i] = i;
  const bool numbers = vt_finite<m, n, ld>(a, member);
  vt_group();
  if (!numbers) {
    for (int i = member; i < m * n; i += group) a[i / n * ld + i % n] = (num)VT_NAN;
    for (int i = member; i < (m < n ? m : n); i += group) pivots[i] = i;
    vt_group();
    return;
  }
  for (int k = 0; k < (m < n ? m : n); ++k) {
    vt_best<num, i32> best = {0, -1};
    for (int i = k + member; i < m; i += group) {
      const num size = vt_abs(a[i * ld + k]);
      if (vt_wins<true>(size, i, best.x, best.at)) { best.x = size; best.at = i; }
    }
    const int p = vt_reduce_best<group, true>(best).at;
    vt_group();
    if (p != k)
      for (int j = member; j < n; j += group) {
        const num x = a[k * ld + j];
        a[k * ld + j] = a[p * ld + j];
        a[p * ld + j] = x;
      }
    if (member == 0) {
      const i32 x = permutation[k];
      permutation[k] = permutation[p];
      permutation[p] = x;
      pivots[k] = p;
    }
    vt_group();
    const num pivot = a[k * ld + k];
    if (pivot != 0)
      for (int i = k + 1 + member; i < m; i += group) {
        const num f = a[i * ld + k] / pivot;
        a[i * ld + k] = f;
        for (int j = k + 1; j < n; ++j) a[i * ld + j] = vt_plus(a[i * ld + j], -f, a[k * ld + j]);
      }
    vt_group();
  }
}
)cuda";

// b (n × k) ← x with a x = b, or aᵀ x = b.
const std::string_view matrix_triangle = R"cuda(
template <int n, int ld, int k, bool lower, bool transposed, bool unit>
VT_FN void vt_triangle(const num* a, num* b, int member) {
  const bool forward = lower != transposed;
  for (int s = 0; s < n; ++s) {
    const int i = forward ? s : n - 1 - s;
    if (!unit) {
      const num pivot = a[i * ld + i];
      for (int c = member; c < k; c += group) b[i * k + c] = b[i * k + c] / pivot;
      vt_group();
    }
    for (int at = member; at < (n - 1 - s) * k; at += group) {
      const int j = forward ? i + 1 + at / k : i - 1 - at / k, c = at % k;
      b[j * k + c] =
          vt_plus(b[j * k + c], -(transposed ? a[i * ld + j] : a[j * ld + i]), b[i * k + c]);
    }
    vt_group();
  }
}
)cuda";

// Householder's: vectors below the diagonal of a, their first element 1; r's diagonal is `beta`,
// opposite in sign to what was above it. With `order`, columns and it are exchanged: the next
// column is the first of the longest.
const std::string_view matrix_qr = R"cuda(
template <int m, int n, int ld>
VT_FN void vt_qr(num* a, num* tau, num* beta, int member, i32* order = 0) {
  for (int j = 0; j < (m < n ? m : n); ++j) {
    if (order) {
      vt_best<num, i32> best = {0, -1};
      for (int c = j + member; c < n; c += group) {
        num square = 0;
        for (int i = j; i < m; ++i) square = vt_plus(square, a[i * ld + c], a[i * ld + c]);
        if (vt_wins<true>(square, c, best.x, best.at)) { best.x = square; best.at = c; }
      }
      const int p = vt_reduce_best<group, true>(best).at;
      vt_group();
      if (p != j) {
        for (int i = member; i < m; i += group) {
          const num x = a[i * ld + j];
          a[i * ld + j] = a[i * ld + p];
          a[i * ld + p] = x;
        }
        if (member == 0) {
          const i32 x = order[j];
          order[j] = order[p];
          order[p] = x;
        }
      }
      vt_group();
    }
    num below = 0;
    for (int i = j + 1 + member; i < m; i += group)
      below = vt_plus(below, a[i * ld + j], a[i * ld + j]);
    below = vt_reduce<group, vt_sum>(below);
    num head = a[j * ld + j], by = 1;
    if (below < 1e-292) {
      // Squares that have lost digits are of numbers that are small beside the head, or else all of
      // them are brought near 1.
      num most = vt_abs(head);
      for (int i = j + 1 + member; i < m; i += group) most = vt_max(most, vt_abs(a[i * ld + j]));
      most = vt_reduce<group, vt_maximum>(most);
      if (most > 0) {
        by = vt_power_near_one(most);
        head *= by;
        below = 0;
        for (int i = j + 1 + member; i < m; i += group) {
          a[i * ld + j] *= by;
          below = vt_plus(below, a[i * ld + j], a[i * ld + j]);
        }
        below = vt_reduce<group, vt_sum>(below);
      }
    }
    num b = head, f = 0;
    if (below != 0) {
      b = -copysign(vt_root(vt_plus(below, head, head)), head);
      f = (b - head) / b;
      const num inverse = 1 / (head - b);
      for (int i = j + 1 + member; i < m; i += group) a[i * ld + j] = a[i * ld + j] * inverse;
    }
    if (member == 0) { tau[j] = f; beta[j] = b / by; }
    vt_group();
    for (int c = j + 1 + member; c < n; c += group) {
      num s = a[j * ld + c];
      for (int i = j + 1; i < m; ++i) s = vt_plus(s, a[i * ld + j], a[i * ld + c]);
      s = -f * s;
      a[j * ld + c] = a[j * ld + c] + s;
      for (int i = j + 1; i < m; ++i) a[i * ld + c] = vt_plus(a[i * ld + c], s, a[i * ld + j]);
    }
    vt_group();
  }
}
// q (m × columns) ← the first columns of the product of `steps` reflections; each thread has
// columns of its own.
template <int m, int ld, int steps, int columns, int width>
VT_FN void vt_reflections(const num* a, const num* tau, num* q, int member) {
  for (int c = member; c < columns; c += group) {
    for (int i = 0; i < m; ++i) q[i * width + c] = i == c;
    for (int j = steps - 1; j >= 0; --j) {
      num s = q[j * width + c];
      for (int i = j + 1; i < m; ++i) s = vt_plus(s, a[i * ld + j], q[i * width + c]);
      s = -tau[j] * s;
      q[j * width + c] = q[j * width + c] + s;
      for (int i = j + 1; i < m; ++i)
        q[i * width + c] = vt_plus(q[i * width + c], s, a[i * ld + j]);
    }
  }
  vt_group();
}
)cuda";

// In each iteration the pairs of a round-robin tournament, which do not meet (Brent and Luk 1985);
// all pairs are a sweep.
const std::string_view matrix_rotations = R"cuda(
template <int n> VT_FN bool vt_pair(int round, int pair, int* p, int* q) {
  constexpr int others = n + n % 2 - 1;
  const int x = pair == 0 ? others : (round + pair) % others, y = (round + others - pair) % others;
  *p = x < y ? x : y;
  *q = x < y ? y : x;
  return *q < n;
}
// cos and sin with which the half of `difference` and the off-diagonal element become a diagonal.
VT_FN void vt_rotation(f64 difference, f64 off, f64* c, f64* s) {
  const f64 zeta = difference / (2 * off),
            t = copysign(1.0, zeta) / (vt_abs(zeta) + sqrt(1 + zeta * zeta));
  *c = 1 / sqrt(1 + t * t);
  *s = t * *c;
}
VT_FN void vt_rotate(f64* x, f64* y, f64 c, f64 s) {
  const f64 a = *x, b = *y;
  *x = c * a - s * b;
  *y = s * a + c * b;
}
)cuda";

// Symmetric a ← its eigenvalues on the diagonal; v ← eigenvectors as columns, unless null. `cs`:
// room for a pair's numbers each.
const std::string_view matrix_eigh = R"cuda(
template <int n, int ld> VT_FN bool vt_eigh(f64* a, f64* v, f64* cs, int member) {
  constexpr int pairs = (n + 1) / 2, rounds = n + n % 2 - 1;
  f64 size = 0;
  for (int i = member; i < n * n; i += group) {
    const f64 x = a[i / n * ld + i % n];
    size = vt_plus(size, x, x);
    if (v) v[i / n * ld + i % n] = i / n == i % n;
  }
  // Of a square: half of what f64 resolves.
  const f64 tiny = vt_reduce<group, vt_sum>(size) * 1e-34;
  vt_group();
  for (int sweep = 0; sweep < 40; ++sweep) {
    i32 rotated = 0;
    for (int round = 0; round < rounds; ++round) {
      int p, q;
      for (int i = member; i < pairs; i += group) {
        f64 c = 1, s = 0;
        if (vt_pair<n>(round, i, &p, &q) && a[p * ld + q] * a[p * ld + q] > tiny) {
          vt_rotation(a[q * ld + q] - a[p * ld + p], a[p * ld + q], &c, &s);
          rotated = 1;
        }
        cs[2 * i] = c;
        cs[2 * i + 1] = s;
      }
      vt_group();
      for (int i = member; i < pairs * n; i += group) {
        const f64 c = cs[i / n * 2], s = cs[i / n * 2 + 1];
        if (!vt_pair<n>(round, i / n, &p, &q) || s == 0) continue;
        vt_rotate(a + i % n * ld + p, a + i % n * ld + q, c, s);
        if (v) vt_rotate(v + i % n * ld + p, v + i % n * ld + q, c, s);
      }
      vt_group();
      for (int i = member; i < pairs * n; i += group) {
        const f64 c = cs[i / n * 2], s = cs[i / n * 2 + 1];
        if (!vt_pair<n>(round, i / n, &p, &q) || s == 0) continue;
        vt_rotate(a + p * ld + i % n, a + q * ld + i % n, c, s);
        if (i % n == p) a[q * ld + p] = 0;
        if (i % n == q) a[p * ld + q] = 0;
      }
      vt_group();
    }
    if (vt_reduce<group, vt_maximum>(rotated) == 0) return true;
  }
  return false;
}
)cuda";

// w ← w V with columns at right angles (Hestenes 1958); v ← V.
const std::string_view matrix_svd = R"cuda(
template <int n, int ld> VT_FN bool vt_turn_columns(f64* w, f64* v, int member) {
  constexpr int pairs = (n + 1) / 2, rounds = n + n % 2 - 1;
  f64 size = 0;
  for (int i = member; i < n * n; i += group) {
    const f64 x = w[i / n * ld + i % n];
    size = vt_plus(size, x, x);
    v[i / n * ld + i % n] = i / n == i % n;
  }
  const f64 tiny = vt_reduce<group, vt_sum>(size) * 1e-34;
  vt_group();
  for (int sweep = 0; sweep < 60; ++sweep) {
    i32 rotated = 0;
    for (int round = 0; round < rounds; ++round) {
      for (int i = member; i < pairs; i += group) {
        int p, q;
        if (!vt_pair<n>(round, i, &p, &q)) continue;
        f64 x = 0, y = 0, both = 0;
        for (int r = 0; r < n; ++r) {
          const f64 a = w[r * ld + p], b = w[r * ld + q];
          x = vt_plus(x, a, a);
          y = vt_plus(y, b, b);
          both = vt_plus(both, a, b);
        }
        // Not more than sums of n products resolve.
        if (vt_abs(both) <= tiny || vt_abs(both) <= 2.3e-16 * n * sqrt(x) * sqrt(y)) continue;
        f64 c, s;
        vt_rotation(y - x, both, &c, &s);
        rotated = 1;
        for (int r = 0; r < n; ++r) {
          vt_rotate(w + r * ld + p, w + r * ld + q, c, s);
          vt_rotate(v + r * ld + p, v + r * ld + q, c, s);
        }
      }
      vt_group();
    }
    if (vt_reduce<group, vt_maximum>(rotated) == 0) return true;
  }
  return false;
}
)cuda";

// Elimination with exchanges of neighbouring rows, one right side; x ← the solution.
const std::string_view matrix_tridiagonal = R"cuda(
template <int n> VT_FN void vt_tridiagonal(const num* below, num* d, num* u, num* far, num* x) {
  for (int i = 0; i < n; ++i) far[i] = 0;
  for (int i = 0; i + 1 < n; ++i) {
    num l = below[i + 1];
    if (vt_abs(d[i]) < vt_abs(l)) {
      num t = d[i]; d[i] = l; l = t;
      t = u[i]; u[i] = d[i + 1]; d[i + 1] = t;
      if (i + 2 < n) { t = far[i]; far[i] = u[i + 1]; u[i + 1] = t; }
      t = x[i]; x[i] = x[i + 1]; x[i + 1] = t;
    }
    if (l == 0) continue;
    const num f = -l / d[i];
    d[i + 1] = vt_plus(d[i + 1], f, u[i]);
    if (i + 2 < n) u[i + 1] = vt_plus(u[i + 1], f, far[i]);
    x[i + 1] = vt_plus(x[i + 1], f, x[i]);
  }
  for (int i = n - 1; i >= 0; --i) {
    if (i + 1 < n) x[i] = vt_plus(x[i], -u[i], x[i + 1]);
    if (i + 2 < n) x[i] = vt_plus(x[i], -far[i], x[i + 2]);
    x[i] = x[i] / d[i];
  }
}
)cuda";

}  // namespace vt::detail::cuda
