// cholesky, lu, solve and triangular_solve of small matrices, one matrix per SIMD lane, or one at a
// time by scalars: the algorithms of linalg_kernels.cpp without branches that depend on the matrix.
// eigh: matrices_eigh.cpp.
#include "matrices.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "matrix_frame.hpp"

namespace vt::detail::cpu {

namespace matrix_emission {

/// Are all elements values of the function, so that no loop is left?
bool in_registers(const LinalgSpec& s, int simd_lanes) {
  if (s.op == Op::cholesky || simd_lanes == 1) return s.n <= 8 && s.columns <= 8;
  return s.n <= 6 && s.columns <= 6;
}

}  // namespace matrix_emission

int matrix_lanes(const LinalgSpec& s, const Target& target) {
  const int simd_lanes = target.simd_lanes(size_of(s.dtype));
  if (simd_lanes < 2 || is_complex(s.dtype) || s.n != s.m || s.n < 1 || s.n > 16 || s.batch < 1)
    return 0;
  const bool few = s.batch < simd_lanes;
  if (few && (s.op == Op::eigh || !matrix_emission::in_registers(s, 1))) return 0;
  switch (s.op) {
    case Op::cholesky:
    case Op::lu:
    case Op::eigh: return few ? 1 : simd_lanes;
    case Op::solve:
    case Op::triangular_solve: return s.columns < 1 || s.columns > 16 ? 0 : few ? 1 : simd_lanes;
    default: return 0;
  }
}

#if VT_HAS_LLVM_HEADERS

namespace matrix_emission {

class MatrixEmitter : Frame {
 public:
  using Frame::Frame;

  void emit(const std::string& name) {
    b_.begin_function(name,
                      {Param::ptr(), Param::ptr(), Param::of(DType::i64), Param::of(DType::i64)});
    const int operands = static_cast<int>(s_.operands()),
              results = s_.op == Op::lu                   ? 3
                        : s_.op == Op::eigh && s_.vectors ? 2
                                                          : 1;
    b_.declare_buffers(operands + results + 1);
    for (int i = 0; i < operands + results; ++i)
      (i < operands ? in_ : out_).push_back(b_.load_pointer(b_.arg(0), i, i));
    const Value left_out = b_.load_pointer(b_.arg(0), operands + results, operands + results);
    b_.for_range(b_.arg(2), b_.arg(3), simd_lanes_, [&](Value first) {
      first_ = first;
      zeros_ = far_ = {};
      switch (s_.op) {
        case Op::cholesky: cholesky(); break;
        case Op::triangular_solve: triangular_solve(); break;
        case Op::lu: lu(); break;
        case Op::solve: s_.factored ? solve_factored() : solve(); break;
        default: return emit_eigh(*this);
      }
      if (zeros_) far_ = b_.compare(Compare::ne, zeros_, real(0));
      if (far_)
        b_.if_then(b_.any(far_), [&] {
          b_.store(b_.offset(left_out, DType::bool_, b_.sub(first, b_.arg(2))), far_);
        });
    });
    if (past_caches(s_)) b_.order_streaming_stores();
    b_.end_function();
  }

 private:
  // What is not finite, times zero, is NaN, which stays in a sum.
  void watch(Value x) { zeros_ = zeros_ ? b_.mul_add(x, real(0), zeros_) : b_.mul(x, real(0)); }

  // By columns: each is the matrix's less what the columns before hold, over the pivot's root.
  // Several columns at a time go through those before
  // together: as many sums are in flight, and each element read is used for all of them.
  void cholesky() {
    const bool registers = in_registers(s_, simd_lanes_);
    SimdMatrix a = matrix(n_, n_, registers);
    a.load(in_[0], first_);
    Value positive, largest;
    const std::int64_t width = registers ? 1 : 4;
    for (std::int64_t k = 0; k < n_; k += width) {
      fetch_next(in_[0], n_ * n_, k, std::min(k + width, n_));
      cholesky_columns(a, k, std::min(width, n_ - k), positive, largest);
    }
    // As linalg_factors.hpp takes a power out of such matrices.
    const bool wide = d_ == DType::f64;
    const Value far = b_.bit_or(b_.compare(Compare::lt, largest, real(wide ? 0x1p-900 : 0x1p-78)),
                                b_.compare(Compare::gt, largest, real(wide ? 0x1p900 : 0x1p78)));
    far_ = b_.bit_and(positive, far);
    const Value nan = real(std::numeric_limits<double>::quiet_NaN());
    const auto refuse = [&] {
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j <= i; ++j) a.set(i, j, b_.select(positive, a.get(i, j), nan));
    };
    if (registers) refuse();
    else b_.if_then(b_.any(b_.bit_not(positive)), refuse);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = i + 1; j < n_; ++j) a.set(i, j, real(0));
    put(a, 0);
  }

  // Columns from … from + count − 1 of the factor; whether the pivots are positive goes into
  // `positive`, and the largest one into `largest`.
  void cholesky_columns(SimdMatrix& a, std::int64_t from, std::int64_t count, Value& positive,
                        Value& largest) {
    const Value half = real(0.5);
    // Elements (i, from) … (i, from + wanted − 1) of each of the rows i, without what the columns
    // before `from` hold.
    const auto rest = [&](std::initializer_list<At> rows, std::int64_t wanted) {
      Vec<Value> x;
      for (const At& i : rows)
        for (std::int64_t c = 0; c < wanted; ++c) {
          const bool diagonal = !i.counted && i.known == from + c;
          x.push_back(diagonal ? a.get(i, i)
                               : b_.add(b_.mul(half, a.get(i, from + c)),
                                        b_.mul(half, a.get(from + c, i))));
        }
      for (std::int64_t j = 0; j < from; ++j) {
        Vec<Value> factors;
        for (std::int64_t c = 0; c < wanted; ++c) factors.push_back(a.get(from + c, j));
        std::size_t at = 0;
        for (const At& i : rows) {
          const Value own = a.get(i, j);
          for (const Value& factor : factors) x[at] = less(x[at], own, factor), ++at;
        }
      }
      return x;
    };
    Vec<Value> inverses;
    // Elements (i, from) … (i, from + wanted − 1) over the pivots' roots.
    const auto finish = [&](At i, Value* x, std::int64_t wanted) {
      for (std::int64_t c = 0; c < wanted; ++c) {
        for (std::int64_t j = 0; j < c; ++j) x[c] = less(x[c], x[j], a.get(from + c, from + j));
        x[c] = b_.mul(x[c], inverses[c]);
        a.set(i, from + c, x[c]);
      }
    };
    for (std::int64_t r = 0; r < count; ++r) {
      const std::int64_t k = from + r;
      Vec<Value> x = rest({k}, r + 1);
      finish(k, x.data(), r);
      Value pivot = x.back();
      for (std::int64_t c = 0; c < r; ++c) pivot = less(pivot, x[c], x[c]);
      const Value good = b_.compare(Compare::gt, pivot, real(0));
      positive = positive ? b_.bit_and(positive, good) : good;
      largest =
          largest ? b_.select(b_.compare(Compare::gt, pivot, largest), pivot, largest) : pivot;
      const Value root = b_.sqrt(pivot);
      inverses.push_back(b_.div(real(1), root));
      a.set(k, k, root);
    }
    // Two rows at a time: twice as many sums.
    const std::int64_t first = from + count, pairs = a.in_registers() ? 0 : (n_ - first) / 2;
    if (pairs > 0)
      b_.for_range(
          b_.index(first), b_.index(first + 2 * pairs), 2,
          [&](Value i) {
            const Value next = b_.add(i, b_.index(1));
            Vec<Value> x = rest({i, next}, count);
            finish(i, x.data(), count);
            finish(next, x.data() + count, count);
          },
          true);
    for (std::int64_t i = first + 2 * pairs; i < n_; ++i) {
      Vec<Value> x = rest({i}, count);
      finish(i, x.data(), count);
    }
  }

  /// Of the matrices that come after these in an array, the part of the lines that a part of the
  /// work, `done` to `until` of n, has time for.
  void fetch_next(Value array, std::int64_t elements, std::int64_t done, std::int64_t until) {
    constexpr std::int64_t line = 64;
    const std::int64_t lines =
        simd_lanes_ * elements * static_cast<std::int64_t>(size_of(d_)) / line;
    const Value next =
        b_.offset(array, d_, b_.mul(b_.add(first_, b_.index(simd_lanes_)), b_.index(elements)));
    for (std::int64_t i = lines * done / n_; i < lines * until / n_; ++i)
      b_.fetch_ahead(b_.offset_bytes(next, b_.index(i * line)), {.near = false});
  }

  // Row k exchanged with the row that has the largest element of column k, in each SIMD lane its
  // own; columns from `left` on, and those of `also`. Gives that row's number.
  Value exchange(SimdMatrix& a, std::int64_t k, std::int64_t left, SimdMatrix* also) {
    const Vec<Value> start{b_.abs(a.get(k, k)), place(k)};
    const auto larger = [&](At i, const Vec<Value>& best) {
      const Value size = b_.abs(a.get(i, k)), more = b_.compare(Compare::gt, size, best[0]);
      return Vec<Value>{b_.select(more, size, best[0]), b_.select(more, place(i), best[1])};
    };
    Vec<Value> best = start;
    if (a.in_registers())
      for (std::int64_t i = k + 1; i < n_; ++i) best = larger(i, best);
    else if (k + 1 < n_)
      best = b_.loop(
          b_.index(k + 1), b_.index(n_), 1, start,
          [&](Value i, const Vec<Value>& x) { return larger(i, x); }, true);
    const Value pivot = best[1];
    // To go through all rows and choose takes four operations an element, and more where the row
    // that moves does not stay in registers.
    if (!a.in_registers() && few_registers_ && n_ - 1 - k > simd_lanes_) {
      a.exchange(k, pivot, left);
      if (also) also->exchange(k, pivot, 0);
      return pivot;
    }

    Vec<Value> old;
    const auto columns = [&](FunctionRef<void(SimdMatrix&, std::int64_t)> f) {
      for (std::int64_t j = left; j < n_; ++j) f(a, j);
      for (std::int64_t j = 0; also && j < s_.columns; ++j) f(*also, j);
    };
    columns([&](SimdMatrix& m, std::int64_t j) { old.push_back(m.get(k, j)); });
    const auto swapped = [&](At i, Vec<Value> top) {
      const Value here = b_.compare(Compare::eq, pivot, place(i));
      std::size_t at = 0;
      columns([&](SimdMatrix& m, std::int64_t j) {
        const Value x = m.get(i, j);
        m.set(i, j, b_.select(here, old[at], x));
        top[at] = b_.select(here, x, top[at]);
        ++at;
      });
      return top;
    };
    Vec<Value> top = old;
    if (a.in_registers())
      for (std::int64_t i = k + 1; i < n_; ++i) top = swapped(i, top);
    else if (k + 1 < n_)
      top = b_.loop(
          b_.index(k + 1), b_.index(n_), 1, old,
          [&](Value i, const Vec<Value>& x) { return swapped(i, x); }, true);
    std::size_t at = 0;
    columns([&](SimdMatrix& m, std::int64_t j) { m.set(k, j, top[at++]); });
    return pivot;
  }

  // Gaussian elimination of a and of the right sides with it: L is not kept.
  void solve() {
    const bool registers = in_registers(s_, simd_lanes_);
    SimdMatrix a = matrix(n_, n_, registers), b = matrix(n_, s_.columns, registers),
               inverses = matrix(n_, 1, registers);
    a.load(in_[0], first_);
    if (s_.transposed) {
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j < i; ++j) {
          const Value x = a.get(i, j);
          a.set(i, j, a.get(j, i));
          a.set(j, i, x);
        }
    }
    b.load(in_[1], first_);
    for (std::int64_t k = 0; k < n_; ++k) {
      if (!registers && few_registers_) fetch_next(in_[0], n_ * n_, k, k + 1);
      exchange(a, k, k, &b);
      const Value inverse = b_.div(real(1), a.get(k, k));
      inverses.set(k, 0, inverse);
      watch(a.get(k, k));
      watch(b_.mul(inverse, real(0x1p24)));  // what is multiplied by it may overflow
      Vec<Value> top;
      for (std::int64_t j = k + 1; j < n_; ++j) top.push_back(a.get(k, j)), watch(top.back());
      for (std::int64_t c = 0; c < s_.columns; ++c) top.push_back(b.get(k, c));
      a.for_rows(k + 1, n_, [&](At i) {
        const Value factor = b_.mul(a.get(i, k), inverse);
        std::size_t at = 0;
        for (std::int64_t j = k + 1; j < n_; ++j) a.set(i, j, less(a.get(i, j), factor, top[at++]));
        for (std::int64_t c = 0; c < s_.columns; ++c)
          b.set(i, c, less(b.get(i, c), factor, top[at++]));
      });
    }
    for (std::int64_t k = n_ - 1; k >= 0; --k) {
      Vec<Value> x;
      for (std::int64_t c = 0; c < s_.columns; ++c) {
        x.push_back(b_.mul(b.get(k, c), inverses.get(k, 0)));
        b.set(k, c, x.back());
      }
      a.for_rows(0, k, [&](At i) {
        const Value u = a.get(i, k);
        for (std::int64_t c = 0; c < s_.columns; ++c) b.set(i, c, less(b.get(i, c), u, x[c]));
      });
    }
    b.store(out_[0], first_);
  }

  void lu() {
    const bool registers = in_registers(s_, simd_lanes_);
    SimdMatrix a = matrix(n_, n_, registers);
    SimdMatrix pivots(b_, DType::i32, simd_lanes_, n_, 1, true),
        order(b_, DType::i32, simd_lanes_, n_, 1, true);
    a.load(in_[0], first_);
    for (std::int64_t i = 0; i < n_; ++i) order.set(i, 0, place(i));
    for (std::int64_t k = 0; k < n_; ++k) {
      if (!registers && few_registers_) fetch_next(in_[0], n_ * n_, k, k + 1);
      const Value pivot = exchange(a, k, 0, nullptr), old = order.get(k, 0);
      pivots.set(k, 0, pivot);
      Value top = old;
      for (std::int64_t i = k + 1; i < n_; ++i) {
        const Value here = b_.compare(Compare::eq, pivot, place(i)), x = order.get(i, 0);
        order.set(i, 0, b_.select(here, old, x));
        top = b_.select(here, x, top);
      }
      order.set(k, 0, top);
      // A column of zeros stays one.
      const Value head = a.get(k, k),
                  inverse = b_.div(
                      real(1), b_.select(b_.compare(Compare::eq, head, real(0)), real(1), head));
      Vec<Value> row;
      watch(head);
      watch(inverse);
      for (std::int64_t j = k + 1; j < n_; ++j) row.push_back(a.get(k, j)), watch(row.back());
      a.for_rows(k + 1, n_, [&](At i) {
        const Value factor = b_.mul(a.get(i, k), inverse);
        a.set(i, k, factor);
        for (std::int64_t j = k + 1; j < n_; ++j)
          a.set(i, j, less(a.get(i, j), factor, row[j - k - 1]));
      });
    }
    a.store(out_[0], first_);
    pivots.store(out_[1], first_);
    order.store(out_[2], first_);
  }

  // x ← op(a)⁻¹ x for a triangle of a.
  struct Triangle {
    bool lower = false, transposed = false, unit = false;
  };
  void triangle(SimdMatrix& a, SimdMatrix& x, Triangle t) {
    const auto [lower, transposed, unit] = t;
    const bool forward = lower != transposed;
    for (std::int64_t step = 0; step < n_; ++step) {
      const std::int64_t k = forward ? step : n_ - 1 - step;
      Vec<Value> row;
      const Value inverse = unit ? Value{} : b_.div(real(1), a.get(k, k));
      if (!unit) watch(inverse);
      for (std::int64_t c = 0; c < s_.columns; ++c) {
        row.push_back(unit ? x.get(k, c) : b_.mul(x.get(k, c), inverse));
        if (!unit) x.set(k, c, row.back());
      }
      x.for_rows(forward ? k + 1 : 0, forward ? n_ : k, [&](At i) {
        const Value factor = t.transposed ? a.get(k, i) : a.get(i, k);
        for (std::int64_t c = 0; c < s_.columns; ++c)
          x.set(i, c, less(x.get(i, c), factor, row[c]));
      });
    }
  }

  void triangular_solve() {
    const bool registers = in_registers(s_, simd_lanes_);
    SimdMatrix a = matrix(n_, n_, registers), x = matrix(n_, s_.columns, registers);
    a.load(in_[0], first_);
    x.load(in_[1], first_);
    triangle(a, x, {s_.lower, s_.transposed, s_.unit_diagonal});
    x.store(out_[0], first_);
  }

  // Row `rows`[i] of the right sides of each SIMD lane's matrix, in an array of them.
  Value rows_at(Value rows) {
    const Value lane = simd_lanes_ == 1 ? b_.index(0) : b_.iota(DType::i64, simd_lanes_),
                last = b_.integer(DType::i64, n_ - 1, simd_lanes_),
                none = b_.integer(DType::i64, 0, simd_lanes_);
    const Value row = b_.max(b_.min(b_.convert(rows, DType::i64), last), none);
    const Value matrix =
        b_.mul(b_.add(simd_lanes_ == 1 ? first_ : b_.splat(first_, simd_lanes_), lane),
               b_.integer(DType::i64, n_, simd_lanes_));
    return b_.mul(b_.add(matrix, row), b_.integer(DType::i64, s_.columns, simd_lanes_));
  }

  void solve_factored() {
    const bool registers = in_registers(s_, simd_lanes_);
    SimdMatrix a = matrix(n_, n_, registers), x = matrix(n_, s_.columns, registers),
               order(b_, DType::i32, simd_lanes_, n_, 1, true);
    a.load(in_[1], first_);
    order.load(in_[2], first_);
    const auto each = [&](FunctionRef<void(std::int64_t, std::int64_t, Value)> f) {
      for (std::int64_t i = 0; i < n_; ++i) {
        const Value rows = rows_at(order.get(i, 0));
        for (std::int64_t c = 0; c < s_.columns; ++c)
          f(i, c, b_.add(rows, b_.integer(DType::i64, c, simd_lanes_)));
      }
    };
    if (!s_.transposed) {
      each([&](std::int64_t i, std::int64_t c, Value at) {
        x.set(
            i, c,
            simd_lanes_ == 1 ? b_.load(b_.offset(in_[3], d_, at), d_) : b_.gather(in_[3], d_, at));
      });
      triangle(a, x, {.lower = true, .unit = true});
      triangle(a, x, {});
      x.store(out_[0], first_);
      return;
    }
    x.load(in_[3], first_);
    triangle(a, x, {.transposed = true});
    triangle(a, x, {.lower = true, .transposed = true, .unit = true});
    // What no row number names is 0.
    SimdMatrix zero = matrix(n_, s_.columns, registers);
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t c = 0; c < s_.columns; ++c) zero.set(i, c, real(0));
    zero.store(out_[0], first_);
    each([&](std::int64_t i, std::int64_t c, Value at) {
      if (simd_lanes_ == 1) b_.store(b_.offset(out_[0], d_, at), x.get(i, c));
      else b_.scatter(out_[0], x.get(i, c), at);
    });
  }

  /// Lanes whose results are not to be kept; 0, or NaN in these. (What is not finite in a matrix is
  /// so in a pivot or right of it, in the end; and pivots whose reciprocals are not would make
  /// zeros NaN.)
  Value far_, zeros_;
  /// 16 vector registers: what is done then was measured on such a machine, what is done else on
  /// one with 32.
  const bool few_registers_ = b_.target().vector_registers < 32;
};

}  // namespace matrix_emission

std::string matrices_key(const LinalgSpec& s, int simd_lanes) {
  std::string key = std::string(simd_lanes == 1 ? "a matrix " : "matrices ") +
                    std::string(name_of(s.op)) + " " + vt::name_of(s.dtype);
  for (bool flag : {s.lower, s.transposed, s.unit_diagonal, s.vectors, s.factored})
    key += flag ? " 1" : " 0";
  if (matrix_emission::past_caches(s)) key += " past";
  return key + " " + std::to_string(s.n) + " " + std::to_string(s.columns);
}

void emit_matrices(IrBuilder& b, const std::string& name, const LinalgSpec& s) {
  matrix_emission::MatrixEmitter(b, s).emit(name);
}

#endif

}  // namespace vt::detail::cpu
