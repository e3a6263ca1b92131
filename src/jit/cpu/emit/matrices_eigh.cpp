// eigh of small symmetric matrices, one matrix per SIMD lane: cyclic Jacobi rotations for the
// smallest ones; larger ones become tridiagonal, and implicit QL steps as in linalg_eigh.hpp run
// over the block that each SIMD lane has come to.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "matrix_frame.hpp"

#if VT_HAS_LLVM_HEADERS

namespace vt::detail::cpu::matrix_emission {

class EighEmitter : Frame {
 public:
  explicit EighEmitter(const Frame& frame) : Frame(frame) {}

  void eigh() {
    const bool registers = n_ <= 4;
    SimdMatrix a = matrix(n_, n_, registers), v = matrix(n_ + !registers, n_, registers),
               w = matrix(n_, 1, registers);
    a.load(in_[0], first_);
    // The symmetric part, where Jacobi's way needs only the upper triangle; its largest element;
    // and 0, or NaN where an element is not finite.
    Value most = real(0), poison = real(0);
    const Value half = real(0.5);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = i; j < n_; ++j) {
        const Value x =
            i == j ? a.get(i, i) : b_.add(b_.mul(half, a.get(i, j)), b_.mul(half, a.get(j, i)));
        a.set(i, j, x);
        const Value size = b_.abs(x);
        most = b_.select(b_.compare(Compare::gt, size, most), size, most);
        poison = b_.mul_add(x, real(0), poison);
      }
    // Times the power of two that brings that near 1, so that squares neither overflow nor vanish.
    const bool wide = d_ == DType::f64;
    const DType bits = wide ? DType::u64 : DType::u32;
    const Value exponent = b_.integer(bits, wide ? 0x7ff0000000000000 : 0x7f800000, simd_lanes_);
    const Value power = b_.max(b_.bitcast(b_.bit_and(b_.bitcast(most, bits), exponent), d_),
                               real(wide ? 0x1p-1022 : 0x1p-126));
    const Value scale = b_.div(real(1), power);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = i; j < n_; ++j) {
        a.set(i, j, b_.mul(a.get(i, j), scale));
        if (!registers && i != j) a.set(j, i, a.get(i, j));
      }
    if (registers) {
      for (std::int64_t i = 0; s_.vectors && i < n_; ++i)
        for (std::int64_t j = 0; j < n_; ++j) v.set(i, j, real(i == j));
      if (n_ > 1) sweeps(a, v, b_.mul(b_.mul(most, scale), real(wide ? 0x1p-54 : 0x1p-25)));
      for (std::int64_t i = 0; i < n_; ++i) w.set(i, 0, a.get(i, i));
    } else {
      // What is smaller counts as 0: its square would have lost digits.
      const double tiny = wide ? 0x1p-485 : 0x1p-51;
      SimdMatrix off = matrix(n_, 1, false), factors = matrix(n_, 1, false);
      tridiagonalize(a, w, off, factors, real(tiny * tiny));
      if (s_.vectors) product_of_reflections(a, factors, v);
      poison = b_.add(poison, diagonalize(w, off, v, real(tiny)));
    }
    sort(w, v);
    if (s_.vectors) {
      orient(a, v, poison);
      put(a, 1);
    }
    for (std::int64_t i = 0; i < n_; ++i) w.set(i, 0, b_.mul_add(w.get(i, 0), power, poison));
    w.store(out_[0], first_);
  }

 private:
  struct Turn {
    Value t, c, s;  // tangent, cosine and sine
  };
  // The smaller angle whose rotation of rows and columns p and q makes element (p, q) 0.
  Turn turn(Value pp, Value qq, Value pq, Value none) {
    const Value one = real(1), gap = b_.sub(qq, pp), twice = b_.add(pq, pq);
    const Value root = b_.sqrt(b_.mul_add(gap, gap, b_.mul(twice, twice)));
    const Value t = b_.select(b_.compare(Compare::le, b_.abs(pq), none), real(0),
                              b_.div(twice, b_.add(gap, b_.copysign(root, gap))));
    const Value c = b_.div(one, b_.sqrt(b_.mul_add(t, t, one)));
    return {t, c, b_.mul(t, c)};
  }
  std::pair<Value, Value> rotated(const Turn& r, Value x, Value y) {
    return {less(b_.mul(r.c, x), r.s, y), b_.mul_add(r.s, x, b_.mul(r.c, y))};
  }
  void turn_rows(SimdMatrix& v, const Turn& r, At p, At q) {
    for (std::int64_t k = 0; s_.vectors && k < n_; ++k) {
      const auto [x, y] = rotated(r, v.get(p, k), v.get(q, k));
      v.set(p, k, x);
      v.set(q, k, y);
    }
  }

  // All pairs, one after the other. Of a only the upper triangle is kept.
  void sweep_in_registers(SimdMatrix& a, SimdMatrix& v, Value none) {
    const auto at = [](std::int64_t i, std::int64_t j) {
      return std::pair(std::min(i, j), std::max(i, j));
    };
    for (std::int64_t p = 0; p < n_; ++p)
      for (std::int64_t q = p + 1; q < n_; ++q) {
        const Value pq = a.get(p, q), pp = a.get(p, p), qq = a.get(q, q);
        const Turn r = turn(pp, qq, pq, none);
        for (std::int64_t k = 0; k < n_; ++k) {
          if (k == p || k == q) continue;
          const auto [i, j] = at(p, k);
          const auto [l, m] = at(q, k);
          const auto [x, y] = rotated(r, a.get(i, j), a.get(l, m));
          a.set(i, j, x);
          a.set(l, m, y);
        }
        a.set(p, p, less(pp, r.t, pq));
        a.set(q, q, b_.mul_add(r.t, pq, qq));
        a.set(p, q, real(0));
        turn_rows(v, r, p, q);
      }
  }

  // Householder's reduction of a, both triangles of which are there, to the diagonal d and the
  // off-diagonal e. Row s is left to reflection s, whose vector begins at s + 1, and factors to
  // what belongs to it.
  void tridiagonalize(SimdMatrix& a, SimdMatrix& d, SimdMatrix& e, SimdMatrix& factors,
                      Value none) {
    SimdMatrix w = matrix(n_, 1, false);
    for (std::int64_t s = 0; s < n_; ++s) {
      d.set(s, 0, a.get(s, s));
      if (s + 1 == n_) break;
      Vec<Value> v;
      for (std::int64_t j = s + 1; j < n_; ++j) v.push_back(a.get(s, j));
      const Value head = v[0];
      if (s + 2 == n_) {
        e.set(s, 0, head);
        continue;
      }
      Value below = real(0);
      for (std::size_t j = 1; j < v.size(); ++j) below = b_.mul_add(v[j], v[j], below);
      const Value flat = b_.compare(Compare::le, below, none),
                  beta = b_.neg(b_.copysign(b_.sqrt(b_.mul_add(head, head, below)), head));
      e.set(s, 0, b_.select(flat, head, beta));
      const Value zero = real(0), factor = b_.select(flat, zero, b_.div(b_.sub(beta, head), beta));
      const Value inverse = b_.select(flat, zero, b_.div(real(1), b_.sub(head, beta)));
      factors.set(s, 0, factor);
      v[0] = real(1);
      for (std::size_t j = 1; j < v.size(); ++j) v[j] = b_.mul(v[j], inverse);
      const auto column = [&](std::size_t j) { return s + 1 + static_cast<std::int64_t>(j); };
      for (std::size_t j = 0; j < v.size(); ++j) a.set(s, column(j), v[j]);
      a.for_rows(s + 1, n_, [&](At i) {
        Value sum = zero;
        for (std::size_t j = 0; j < v.size(); ++j) sum = b_.mul_add(a.get(i, column(j)), v[j], sum);
        w.set(i, 0, sum);
      });
      Value length = zero;
      for (std::size_t j = 0; j < v.size(); ++j)
        length = b_.mul_add(w.get(column(j), 0), v[j], length);
      const Value along = b_.mul(b_.mul(factor, factor), b_.mul(real(0.5), length));
      Vec<Value> minus_w;
      for (std::size_t j = 0; j < v.size(); ++j) {
        minus_w.push_back(less(b_.mul(along, v[j]), factor, w.get(column(j), 0)));
        w.set(column(j), 0, minus_w.back());
      }
      a.for_rows(s + 1, n_, [&](At i) {
        const Value own = a.get(s, i), also = w.get(i, 0);
        for (std::size_t j = 0; j < v.size(); ++j)
          a.set(i, column(j),
                b_.mul_add(also, v[j], b_.mul_add(own, minus_w[j], a.get(i, column(j)))));
      });
    }
  }
  // z ← the transposed product of the reflections, and a row of zeros.
  void product_of_reflections(SimdMatrix& a, SimdMatrix& factors, SimdMatrix& z) {
    for (std::int64_t i = 0; i <= n_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) z.set(i, j, real(i == j));
    for (std::int64_t s = n_ - 3; s >= 0; --s)
      z.for_rows(s + 1, n_, [&](At i) {
        Value sum = real(0);
        for (std::int64_t j = s + 1; j < n_; ++j) sum = b_.mul_add(z.get(i, j), a.get(s, j), sum);
        const Value factor = b_.mul(sum, factors.get(s, 0));
        for (std::int64_t j = s + 1; j < n_; ++j)
          z.set(i, j, less(z.get(i, j), factor, a.get(s, j)));
      });
  }

  /// Each SIMD lane's lowest block that is not diagonal yet: rows l … m, some of its elements, and
  /// what rows those of all SIMD lanes are among.
  enum Block : std::size_t { iteration, low, high, l, m, d_l, d_after, d_m, e_l };
  Vec<Value> find_block(Value iterations, SimdMatrix& d, SimdMatrix& e, Value tiny) {
    const Value zero = real(0), epsilon = real(d_ == DType::f64 ? 0x1p-52 : 0x1p-23);
    const Vec<Value> none{b_.index(n_), b_.index(0), place(n_),
                          place(0),     zero,        zero,
                          zero,         real(1),     b_.boolean(false, simd_lanes_)};
    const Vec<Value> found = b_.loop(
        b_.index(0), b_.index(n_ - 1), 1, none,
        [&](Value k, const Vec<Value>& x) {
          const Value i = b_.sub(b_.index(n_ - 2), k), next = b_.add(i, b_.index(1));
          const Value here = d.get(i, 0), after = d.get(next, 0), off = e.get(i, 0);
          const Value least = b_.mul_add(epsilon, b_.add(b_.abs(here), b_.abs(after)), tiny),
                      there = b_.compare(Compare::gt, b_.abs(off), least);
          const Value begins = b_.bit_and(there, b_.bit_not(x[8])), some = b_.any(there);
          const Value highest = b_.bit_and(some, b_.compare(Compare::eq, x[1], b_.index(0)));
          return Vec<Value>{b_.select(some, i, x[0]),
                            b_.select(highest, next, x[1]),
                            b_.select(there, place(i), x[2]),
                            b_.select(begins, place(next), x[3]),
                            b_.select(there, here, x[4]),
                            b_.select(there, after, x[5]),
                            b_.select(begins, after, x[6]),
                            b_.select(there, off, x[7]),
                            there};
        },
        true);
    Vec<Value> block{iterations};
    block.insert(block.end(), found.begin(), found.end() - 1);
    return block;
  }
  // Implicit QL steps as in linalg_eigh.hpp, each SIMD lane at its own block. Gives NaN for SIMD
  // lanes that do not converge, else 0.
  Value diagonalize(SimdMatrix& d, SimdMatrix& e, SimdMatrix& z, Value tiny) {
    const Value zero = real(0), one = real(1), none = b_.mul(tiny, tiny);
    const std::int64_t columns = s_.vectors ? n_ : 0;
    const Vec<Value> last = b_.while_loop(
        find_block(b_.index(0), d, e, tiny),
        [&](const Vec<Value>& x) {
          return b_.bit_and(b_.compare(Compare::lt, x[low], x[high]),
                            b_.compare(Compare::lt, x[iteration], b_.index(60 * n_)));
        },
        [&](const Vec<Value>& x) {
          const Value half = b_.div(b_.sub(x[d_after], x[d_l]), b_.add(x[e_l], x[e_l]));
          const Value root = b_.copysign(b_.sqrt(b_.mul_add(half, half, one)), half);
          // g, s, c, what moved, and d of the row before. Vectors turn one iteration later: what
          // waits for roots and quotients is next to nothing.
          Vec<Value> start{b_.add(b_.sub(x[d_m], x[d_l]), b_.div(x[e_l], b_.add(half, root))),
                           one,
                           one,
                           zero,
                           d.get(x[high], 0),
                           one,
                           zero};
          const Value above = b_.add(x[high], b_.index(1));
          for (std::int64_t j = 0; j < columns; ++j) start.push_back(z.get(above, j));
          const auto turn_row = [&](Value row, const Vec<Value>& y, Vec<Value> result) {
            for (std::int64_t j = 0; j < columns; ++j) {
              const auto [own, shared] =
                  rotated({{}, y[5], y[6]}, z.get(row, j), y[7 + static_cast<std::size_t>(j)]);
              z.set(b_.add(row, b_.index(1)), j, shared);
              result.push_back(own);
            }
            return result;
          };
          const Vec<Value> end = b_.loop(
              b_.index(0), b_.sub(x[high], x[low]), 1, start,
              [&](Value k, const Vec<Value>& y) {
                const Value next = b_.sub(x[high], k), i = b_.sub(next, b_.index(1)), at = place(i);
                const Value off = e.get(i, 0), here = d.get(i, 0), f = b_.mul(y[1], off),
                            b = b_.mul(y[2], off);
                const Value square = b_.mul_add(f, f, b_.mul(y[0], y[0])), r = b_.sqrt(square),
                            inverse = b_.mul(r, b_.div(one, square));
                const Value active = b_.bit_and(b_.compare(Compare::ge, at, x[l]),
                                                b_.compare(Compare::lt, at, x[m]));
                const Value turns = b_.bit_and(active, b_.compare(Compare::gt, square, none));
                const Value s = b_.select(turns, b_.mul(f, inverse), b_.select(active, zero, y[1]));
                const Value c =
                    b_.select(turns, b_.mul(y[0], inverse), b_.select(active, one, y[2]));
                const Value g = b_.sub(y[4], y[3]),
                            t = b_.mul_add(b_.sub(here, g), s, b_.mul(b_.add(c, c), b)),
                            moved = b_.mul(s, t);
                const Value after = b_.mul_add(c, t, b_.neg(b)),
                            done = b_.bit_and(active, b_.compare(Compare::eq, at, x[l]));
                d.set(next, 0, b_.select(active, b_.add(g, moved), y[4]));
                const Value corner =
                    b_.select(b_.compare(Compare::eq, b_.add(at, place(1)), x[m]), zero, r);
                e.set(next, 0, b_.select(active, corner, e.get(next, 0)));
                const Value left = b_.select(done, b_.sub(here, moved), here);
                d.set(i, 0, left);
                e.set(i, 0, b_.select(done, after, off));
                return turn_row(
                    next, y,
                    {b_.select(active, after, y[0]), s, c, b_.select(active, moved, y[3]), left,
                     b_.select(active, c, one), b_.select(active, s, zero)});
              },
              true);
          const Vec<Value> lowest = turn_row(x[low], end, {});
          for (std::int64_t j = 0; j < columns; ++j) z.set(x[low], j, lowest[j]);
          return find_block(b_.add(x[iteration], b_.index(1)), d, e, tiny);
        });
    return b_.select(b_.compare(Compare::lt, last[l], place(n_)),
                     real(std::numeric_limits<double>::quiet_NaN()), zero);
  }

  /// The pairs that Batcher's merge sort compares, in order.
  Vec<std::pair<std::int64_t, std::int64_t>> comparisons() const {
    Vec<std::pair<std::int64_t, std::int64_t>> pairs;
    for (std::int64_t p = 1; p < n_; p *= 2)
      for (std::int64_t k = p; k >= 1; k /= 2)
        for (std::int64_t j = k % p; j + k < n_; j += 2 * k)
          for (std::int64_t i = 0; i < std::min(k, n_ - j - k); ++i)
            if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) pairs.emplace_back(i + j, i + j + k);
    return pairs;
  }

  void compare_exchange(SimdMatrix& w, SimdMatrix& v, At i, At j) {
    const Value x = w.get(i, 0), y = w.get(j, 0), wrong = b_.compare(Compare::gt, x, y);
    w.set(i, 0, b_.select(wrong, y, x));
    w.set(j, 0, b_.select(wrong, x, y));
    for (std::int64_t k = 0; s_.vectors && k < n_; ++k) {
      const Value first = v.get(i, k), second = v.get(j, k);
      v.set(i, k, b_.select(wrong, second, first));
      v.set(j, k, b_.select(wrong, first, second));
    }
  }

  // All pairs in turn, until nothing is left off the diagonal in any SIMD lane.
  void sweeps(SimdMatrix& a, SimdMatrix& v, Value small) {
    constexpr int most_sweeps = 24;
    const auto off_diagonal = [&] {
      Value most = real(0);
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = i + 1; j < n_; ++j) {
          const Value size = b_.abs(a.get(i, j));
          most = b_.select(b_.compare(Compare::gt, size, most), size, most);
        }
      return most;
    };
    const Value none = b_.mul(small, real(0x1p-6));
    const auto take = [&](const Vec<Value>& x) {
      const auto middle = x.begin() + 2 + static_cast<std::ptrdiff_t>(a.elements().size());
      a.elements().assign(x.begin() + 2, middle);
      v.elements().assign(middle, x.end());
    };
    const auto give = [&](Value iteration, Value off) {
      Vec<Value> x{iteration, off};
      x.insert(x.end(), a.elements().begin(), a.elements().end());
      x.insert(x.end(), v.elements().begin(), v.elements().end());
      return x;
    };
    take(b_.while_loop(
        give(b_.index(0), off_diagonal()),
        [&](const Vec<Value>& x) {
          return b_.bit_and(b_.compare(Compare::lt, x[0], b_.index(most_sweeps)),
                            b_.any(b_.compare(Compare::gt, x[1], small)));
        },
        [&](const Vec<Value>& x) {
          take(x);
          sweep_in_registers(a, v, none);
          return give(b_.add(x[0], b_.index(1)), off_diagonal());
        }));
  }

  void sort(SimdMatrix& w, SimdMatrix& v) {
    const auto pairs = comparisons();
    if (w.in_registers()) {
      for (const auto& [i, j] : pairs) compare_exchange(w, v, i, j);
      return;
    }
    Vec<std::uint64_t> table;
    for (const auto& [i, j] : pairs)
      table.push_back(static_cast<std::uint64_t>(i)),
          table.push_back(static_cast<std::uint64_t>(j));
    const Value array = b_.constant_array("comparisons" + std::to_string(n_), DType::i64, table);
    b_.for_range(b_.index(0), b_.index(static_cast<std::int64_t>(table.size())), 2, [&](Value at) {
      compare_exchange(w, v, b_.load(b_.offset(array, DType::i64, at), DType::i64),
                       b_.load(b_.offset(array, DType::i64, b_.add(at, b_.index(1))), DType::i64));
    });
  }

  // a ← the rows of v as columns, signed as eigh defines.
  void orient(SimdMatrix& a, SimdMatrix& v, Value poison) {
    v.for_rows(0, n_, [&](At i) {
      Vec<Value> row;
      Value most = real(0);
      for (std::int64_t k = 0; k < n_; ++k) {
        row.push_back(v.get(i, k));
        const Value size = b_.abs(row.back());
        most = b_.select(b_.compare(Compare::gt, size, most), size, most);
      }
      const Value enough = b_.mul(most, real(0.37));
      Value first = row.back();
      for (std::size_t k = row.size(); k-- > 0;)
        first = b_.select(b_.compare(Compare::ge, b_.abs(row[k]), enough), row[k], first);
      const Value sign = b_.select(b_.compare(Compare::lt, first, real(0)), real(-1), real(1));
      for (std::int64_t k = 0; k < n_; ++k) a.set(k, i, b_.mul_add(row[k], sign, poison));
    });
  }
};

void emit_eigh(const Frame& frame) { EighEmitter(frame).eigh(); }

}  // namespace vt::detail::cpu::matrix_emission

#endif
