// Small matrices in register kernels: cholesky, lu, solve and triangular_solve as operations on
// single numbers, for any emitter.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <utility>

#include <vt/detail/small_vec.hpp>

#include "../../trace/ir/graph.hpp"

namespace vt::detail {

/// The sizes of such an equation: `count` matrices of n × n, right sides of n × columns.
struct SmallMatrixSizes {
  std::int64_t n = 0, columns = 0, count = 1;
};
/// Nothing if it is another op, or too large, or of complex numbers.
inline std::optional<SmallMatrixSizes> small_matrix_sizes(const GraphBody& g, const Equation& e) {
  constexpr std::int64_t most = 8;
  if (e.op != Op::cholesky && e.op != Op::lu && e.op != Op::solve && e.op != Op::triangular_solve)
    return std::nullopt;
  const Aval& a = g.aval(e.inputs[0]);
  const std::size_t rank = a.shape.size();
  if ((a.dtype != DType::f64 && a.dtype != DType::f32) ||
      (e.params && e.params->get_if<PartsParams>()) || a.shape[rank - 1] != a.shape[rank - 2])
    return std::nullopt;
  SmallMatrixSizes sizes{.n = a.shape[rank - 1]};
  if (e.inputs.size() > 1) sizes.columns = g.aval(e.inputs.back()).shape.back();
  if (sizes.n < 1 || sizes.n > most || sizes.columns > most) return std::nullopt;
  for (std::size_t d = 0; d + 2 < rank; ++d) sizes.count *= a.shape[d];
  return sizes;
}
/// About how many operations it takes.
inline std::int64_t small_matrix_operations(const Equation& e, const SmallMatrixSizes& s) {
  constexpr std::int64_t of_division = 8;
  const std::int64_t n = s.n, square = n * n, cube = square * n,
                     right = s.columns * (square + n * of_division);
  const std::int64_t eliminated = cube + 3 * square + n * of_division;
  std::int64_t all = right;
  if (e.op == Op::cholesky) all = cube / 6 + 2 * square + 2 * n * of_division;
  else if (e.op == Op::lu) all = eliminated + square;
  else if (e.op == Op::solve) all = eliminated + 2 * right;
  return all * s.count;
}

/// `Arrays` is SmallArrays, whose operations on numbers it uses. The algorithms have no branches:
/// rows are exchanged by choices, each SIMD lane its own. Every matrix is scaled by the power of
/// two that brings its largest element near 1, so that what is computed from it neither overflows
/// nor loses digits where the matrix itself does not.
template <class Arrays>
class SmallMatrices {
 public:
  using Number = typename Arrays::Number;
  using Elements = Vec<Number>;

  SmallMatrices(Arrays& arrays, DType dtype, std::int64_t n) : a_(arrays), d_(dtype), n_(n) {}

  /// L and U of a matrix that was scaled, and what else solves with them need.
  struct Factors {
    explicit Factors(Elements matrix) : both(std::move(matrix)), exchanged(both.size()) {}
    Elements both;      ///< n × n; of L what is below its ones
    Elements inverses;  ///< of U's diagonal
    /// Of step k: was row i exchanged with row k? At k · n + i.
    Elements exchanged;
    Number exponent, scale, unscale;
    Number zero;  ///< 0, or NaN if the matrix was not finite
  };
  /// The pivot is the first largest element of its column.
  Factors factored(const Elements& matrix) {
    Factors f(matrix);
    scale(f.both, f);
    for (std::int64_t k = 0; k < n_; ++k) {
      exchange(f, k, 0, nullptr, 0);
      eliminate(f, k, true, nullptr, 0);
    }
    return f;
  }
  /// What lu gives: the factors of the matrix as it was, pivots and permutation.
  struct Lu {
    Elements both, pivots, permutation;
  };
  Lu lu(const Factors& f) {
    Lu out;
    const Number good = is_zero(f.zero), nan = real(std::numeric_limits<double>::quiet_NaN());
    for (std::int64_t i = 0; i < n_; ++i)
      for (std::int64_t j = 0; j < n_; ++j) {
        const Number x = f.both[i * n_ + j];
        out.both.push_back(choose(good, j < i ? x : mul(x, f.unscale), nan));
      }
    Elements rows;
    for (std::int64_t i = 0; i < n_; ++i) rows.push_back(place(i));
    for (std::int64_t k = 0; k < n_; ++k) {
      Number pivot = place(k);
      const Number top = rows[k];
      for (std::int64_t i = k + 1; i < n_; ++i) {
        const Number here = both(good, f.exchanged[k * n_ + i]), row = rows[i];
        pivot = choose(here, place(i), pivot);
        rows[i] = choose(here, top, row);
        rows[k] = choose(here, row, rows[k]);
      }
      out.pivots.push_back(pivot);
    }
    out.permutation = std::move(rows);
    return out;
  }
  /// x with matrix · x = b, or with the transposed one.
  Elements solved(const Factors& f, Elements b, std::int64_t columns, bool transposed) {
    const Number later = scale_right_sides(f, b);
    const auto swap = [&](std::int64_t k) {
      for (std::int64_t c = 0; c < columns; ++c) exchange_numbers(f, k, b, columns, c);
    };
    const auto at = [&](std::int64_t i, std::int64_t j) {
      return transposed ? f.both[j * n_ + i] : f.both[i * n_ + j];
    };
    // Rows from `first` on, each less what the rows before it contribute.
    const auto substitute = [&](bool forward, bool unit) {
      for (std::int64_t s = 0; s < n_; ++s) {
        const std::int64_t k = forward ? s : n_ - 1 - s;
        for (std::int64_t c = 0; c < columns; ++c) {
          Number& x = b[k * columns + c];
          for (std::int64_t q = 0; q < s; ++q) {
            const std::int64_t j = forward ? q : n_ - 1 - q;
            x = less(x, at(k, j), b[j * columns + c]);
          }
          if (!unit) x = mul(x, f.inverses[k]);
        }
      }
    };
    if (!transposed)
      for (std::int64_t k = 0; k < n_; ++k) swap(k);
    substitute(true, !transposed);
    substitute(false, transposed);
    if (transposed)
      for (std::int64_t k = n_ - 1; k >= 0; --k) swap(k);
    return finished(f, std::move(b), later);
  }
  /// The same without keeping L: the right sides are eliminated with the matrix.
  Elements solved(Elements matrix, Elements b, std::int64_t columns, bool transposed) {
    if (transposed)
      for (std::int64_t i = 0; i < n_; ++i)
        for (std::int64_t j = 0; j < i; ++j) std::swap(matrix[i * n_ + j], matrix[j * n_ + i]);
    Factors f(std::move(matrix));
    scale(f.both, f);
    const Number later = scale_right_sides(f, b);
    for (std::int64_t k = 0; k < n_; ++k) {
      exchange(f, k, k, &b, columns);
      eliminate(f, k, false, &b, columns);
    }
    for (std::int64_t k = n_ - 1; k >= 0; --k)
      for (std::int64_t c = 0; c < columns; ++c) {
        Number& x = b[k * columns + c];
        x = mul(x, f.inverses[k]);
        for (std::int64_t i = 0; i < k; ++i) {
          Number& y = b[i * columns + c];
          y = less(y, f.both[i * n_ + k], x);
        }
      }
    return finished(f, std::move(b), later);
  }

  struct Cholesky {
    Elements lower;
    Elements inverses;  ///< of its diagonal; all are numbers
  };
  /// L with L Lᵀ = the symmetric part; all NaN (but the zeros above) if that is not positive
  /// definite.
  Cholesky cholesky(const Elements& matrix) {
    Elements sizes;
    for (std::int64_t i = 0; i < n_; ++i) sizes.push_back(magnitude(matrix[i * n_ + i]));
    // 4ᵏ is taken out of the matrix, 2ᵏ put back into L.
    const Number h =
        integer(Op::shift_right_logical,
                integer(Op::add, exponent_of(largest(std::move(sizes))), whole(1)), whole(1));
    const Number scale = power(
                     integer(Op::sub, whole(2 * bias() + 1), integer(Op::shift_left, h, whole(1)))),
                 unscale = power(integer(Op::add, h, whole(bias() / 2)));
    Cholesky out{.lower = Elements(n_ * n_, real(0)), .inverses = {}};
    const auto l = [&](std::int64_t i, std::int64_t j) -> Number& { return out.lower[i * n_ + j]; };
    const Number half = real(0.5);
    Number good;
    for (std::int64_t j = 0; j < n_; ++j)
      for (std::int64_t i = j; i < n_; ++i) {
        Number x = mul(matrix[i * n_ + j], scale);
        if (i != j) x = mul(half, a_.kept(Op::add, d_, x, mul(matrix[j * n_ + i], scale)));
        for (std::int64_t k = 0; k < j; ++k) x = less(x, l(i, k), l(j, k));
        if (i > j) {
          l(i, j) = mul(x, out.inverses[j]);
          continue;
        }
        const Number fits =
            both(compare(Op::gt, x, real(0)), compare(Op::le, x, real(most_finite())));
        good = good ? both(good, fits) : fits;
        l(j, j) = a_.kept(Op::sqrt, d_, x);
        out.inverses.push_back(a_.kept(Op::div, d_, real(1), l(j, j)));
      }
    const Number nan = real(std::numeric_limits<double>::quiet_NaN()),
                 back = a_.kept(Op::div, d_, real(1), unscale);
    for (std::int64_t i = 0; i < n_; ++i) {
      for (std::int64_t j = 0; j <= i; ++j) l(i, j) = choose(good, mul(l(i, j), unscale), nan);
      out.inverses[i] = choose(good, mul(out.inverses[i], back), nan);
    }
    return out;
  }
  struct Triangle {
    bool lower = false, transposed = false, unit = false;
  };
  /// x ← op(matrix)⁻¹ x. `inverses`: of the diagonal, if they are known.
  Elements triangular_solved(const Elements& matrix, Elements x, std::int64_t columns, Triangle t,
                             const Elements* inverses) {
    const bool forward = t.lower != t.transposed;
    for (std::int64_t s = 0; s < n_; ++s) {
      const std::int64_t k = forward ? s : n_ - 1 - s;
      for (std::int64_t c = 0; c < columns; ++c) {
        Number& y = x[k * columns + c];
        for (std::int64_t q = 0; q < s; ++q) {
          const std::int64_t j = forward ? q : n_ - 1 - q;
          y = less(y, t.transposed ? matrix[j * n_ + k] : matrix[k * n_ + j], x[j * columns + c]);
        }
        if (!t.unit && inverses) y = mul(y, (*inverses)[k]);
        else if (!t.unit) y = a_.kept(Op::div, d_, y, matrix[k * n_ + k]);
      }
    }
    return x;
  }

 private:
  // ---- numbers ----------------------------------------------------------------------------------

  Number real(double x) { return a_.number(x, d_); }
  Number place(std::int64_t i) { return a_.number(i, DType::i32); }
  Number mul(const Number& x, const Number& y) { return a_.kept(Op::mul, d_, x, y); }
  /// x − y z, in one rounding where the executor has that.
  Number less(const Number& x, const Number& y, const Number& z) {
    return a_.kept_multiply_add(a_.kept(Op::neg, d_, y), z, x);
  }
  Number compare(Op op, const Number& x, const Number& y) {
    return a_.kept(op, DType::bool_, x, y);
  }
  Number both(const Number& x, const Number& y) { return a_.kept(Op::and_, DType::bool_, x, y); }
  Number choose(const Number& mask, const Number& x, const Number& y) {
    return a_.kept_choice(mask, x, y);
  }
  Number magnitude(const Number& x) { return a_.kept(Op::abs, d_, x); }
  /// Of numbers that are not NaN. In pairs, so that few wait for each other.
  Number largest(Elements x) {
    for (std::size_t step = 1; step < x.size(); step *= 2)
      for (std::size_t i = 0; i + step < x.size(); i += 2 * step)
        x[i] = choose(compare(Op::gt, x[i + step], x[i]), x[i + step], x[i]);
    return x[0];
  }
  Number is_zero(const Number& x) { return compare(Op::eq, x, real(0)); }
  double most_finite() const {
    return d_ == DType::f64 ? std::numeric_limits<double>::max()
                            : std::numeric_limits<float>::max();
  }

  // ---- powers of two ----------------------------------------------------------------------------

  DType bits() const { return d_ == DType::f64 ? DType::i64 : DType::i32; }
  std::int64_t fraction_bits() const { return d_ == DType::f64 ? 52 : 23; }
  std::int64_t bias() const { return d_ == DType::f64 ? 1023 : 127; }
  Number whole(std::int64_t x) { return a_.number(x, bits()); }
  Number integer(Op op, const Number& x, const Number& y) { return a_.kept(op, bits(), x, y); }
  /// The exponent's bits of a number that is not negative; those of the least or greatest power of
  /// two that has a reciprocal where they stand for less or more.
  Number exponent_of(const Number& x) {
    const Number e =
        integer(Op::shift_right_logical, a_.kept(Op::bitcast, bits(), x), whole(fraction_bits()));
    return integer(Op::min, integer(Op::max, e, whole(1)), whole(2 * bias() - 1));
  }
  Number power(const Number& exponent) {
    return a_.kept(Op::bitcast, d_, integer(Op::shift_left, exponent, whole(fraction_bits())));
  }

  // ---- elimination ------------------------------------------------------------------------------

  /// Brings the largest element of `matrix` near 1.
  void scale(Elements& matrix, Factors& f) {
    Elements sizes;
    for (const Number& x : matrix) sizes.push_back(magnitude(x));
    f.exponent = exponent_of(largest(std::move(sizes)));
    f.unscale = power(f.exponent);
    f.scale = power(integer(Op::sub, whole(2 * bias()), f.exponent));
    for (Number& x : matrix) x = mul(x, f.scale);
  }
  void exchange_numbers(const Factors& f, std::int64_t k, Elements& m, std::int64_t width,
                        std::int64_t j) {
    const Number old = m[k * width + j];
    Number top = old;
    for (std::int64_t i = k + 1; i < n_; ++i) {
      const Number here = f.exchanged[k * n_ + i], x = m[i * width + j];
      m[i * width + j] = choose(here, old, x);
      top = choose(here, x, top);
    }
    m[k * width + j] = top;
  }
  /// Row k exchanged with that of the pivot: its columns from `left` on, and those of `b`.
  void exchange(Factors& f, std::int64_t k, std::int64_t left, Elements* b, std::int64_t columns) {
    if (k + 1 == n_) return;
    Elements sizes;
    for (std::int64_t i = k; i < n_; ++i) sizes.push_back(magnitude(f.both[i * n_ + k]));
    const Number best = largest(sizes);
    // The first of the largest is the pivot.
    Number before = compare(Op::eq, sizes[0], best);
    for (std::int64_t i = k + 1; i < n_; ++i) {
      const Number here = compare(Op::eq, sizes[i - k], best);
      f.exchanged[k * n_ + i] = both(here, a_.kept(Op::not_, DType::bool_, before));
      if (i + 1 < n_) before = a_.kept(Op::or_, DType::bool_, before, here);
    }
    for (std::int64_t j = left; j < n_; ++j) exchange_numbers(f, k, f.both, n_, j);
    for (std::int64_t c = 0; c < columns; ++c) exchange_numbers(f, k, *b, columns, c);
  }
  /// Column k below its pivot. A column of zeros stays one.
  void eliminate(Factors& f, std::int64_t k, bool keep, Elements* b, std::int64_t columns) {
    const auto at = [&](std::int64_t i, std::int64_t j) -> Number& { return f.both[i * n_ + j]; };
    const Number head = at(k, k);
    f.inverses.push_back(a_.kept(Op::div, d_, real(1), head));
    for (std::int64_t j = k; j < n_; ++j)
      f.zero = f.zero ? a_.kept_multiply_add(at(k, j), real(0), f.zero) : mul(at(k, j), real(0));
    if (k + 1 == n_) return;
    const Number inverse = choose(is_zero(head), real(0), f.inverses.back());
    for (std::int64_t i = k + 1; i < n_; ++i) {
      const Number factor = mul(at(i, k), inverse);
      if (keep) at(i, k) = factor;
      for (std::int64_t j = k + 1; j < n_; ++j) at(i, j) = less(at(i, j), factor, at(k, j));
      for (std::int64_t c = 0; c < columns; ++c) {
        Number& y = (*b)[i * columns + c];
        y = less(y, factor, (*b)[k * columns + c]);
      }
    }
  }
  /// The matrix's scale is put into the right sides where that brings these nearer to 1; else into
  /// the solution, which is multiplied by what this gives.
  Number scale_right_sides(const Factors& f, Elements& b) {
    Elements sizes;
    for (const Number& x : b) sizes.push_back(magnitude(x));
    const auto below_one = [&](const Number& exponent) {
      return compare(Op::lt, exponent, whole(bias()));
    };
    const Number apart = a_.kept(Op::xor_, DType::bool_, below_one(f.exponent),
                                 below_one(exponent_of(largest(std::move(sizes))))),
                 now = choose(apart, real(1), f.scale);
    for (Number& x : b) x = mul(x, now);
    return choose(apart, f.scale, real(1));
  }
  Elements finished(const Factors& f, Elements x, const Number& later) {
    const Number by =
        choose(is_zero(f.zero), later, real(std::numeric_limits<double>::quiet_NaN()));
    for (Number& y : x) y = mul(y, by);
    return x;
  }

  Arrays& a_;
  const DType d_;
  const std::int64_t n_;
};

}  // namespace vt::detail
