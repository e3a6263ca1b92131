// One equation of the linalg family, matrix after matrix: operands of any float dtype as doubles or
// complex numbers, and back.
#include "linalg_kernels.hpp"

#include <bit>

#include "linalg_eig.hpp"
#include "linalg_eigh.hpp"
#include "linalg_svd.hpp"

namespace vt::detail::linalg_kernels {

/// The operands and results of one matrix after the other, as T: what they are, but for c64, which
/// is worked on in f64.
template <class T>
class Work {
 public:
  static constexpr Index parts = sizeof(T) / sizeof(Real<T>);
  Work(DType dtype, const void* const* operands, void* const* results)
      : same_(sizeof(Real<T>) == size_of(real_dtype(dtype))),
        operands_(operands),
        results_(results) {}
  /// Operand i of matrix `at`, `n` elements of it: where it is, if it can be read there.
  const T* read(std::size_t i, Index at, Index n) {
    return same_ ? static_cast<const T*>(operands_[i]) + at * n : copy(i, at, n);
  }
  /// The same as a copy; `in_result`: where the first result will be, if that can be.
  T* copy(std::size_t i, Index at, Index n, bool in_result = false) {
    T* to = in_result && results_[0] ? result(0, at, n) : room(i, n);
    if (same_) return std::copy_n(static_cast<const T*>(operands_[i]) + at * n, n, to), to;
    const float* from = static_cast<const float*>(operands_[i]) + at * n * parts;
    std::copy_n(from, n * parts, reinterpret_cast<Real<T>*>(to));
    return to;
  }
  T* room(std::size_t i, Index n) {
    rooms_[i].resize(static_cast<std::size_t>(n) + 1);  // never null
    return rooms_[i].data();
  }
  /// Where result i of matrix `at` may be made, for `put`.
  T* result(std::size_t i, Index at, Index n) {
    return same_ && results_[i] ? static_cast<T*>(results_[i]) + at * n : room(4 + i, n);
  }
  double* reals(Index n) {
    reals_.resize(static_cast<std::size_t>(n) + 1);
    return reals_.data();
  }
  void put(std::size_t i, Index at, const T* from, Index n) {
    put_reals(i, at, reinterpret_cast<const Real<T>*>(from), n * parts);
  }
  template <class R>
  void put_reals(std::size_t i, Index at, const R* from, Index n) {
    if (!results_[i]) return;
    if (same_ && sizeof(Real<T>) == sizeof(double))
      copied(from, n, static_cast<double*>(results_[i]) + at * n);
    else copied(from, n, static_cast<float*>(results_[i]) + at * n);
  }

 private:
  template <class R, class To>
  static void copied(const R* from, Index n, To* to) {
    if (static_cast<const void*>(from) != to)
      std::transform(from, from + n, to, [](R x) { return static_cast<To>(x); });
  }
  bool same_;
  const void* const* operands_;
  void* const* results_;
  RecycledVec<T> rooms_[8];
  RecycledVec<double> reals_;
};

template <class T>
void run(const LinalgSpec& s, const void* const* operands, void* const* results, Index begin,
         Index end) {
  Work<T> w(s.dtype, operands, results);
  const Index m = s.m, n = s.n, k = std::min(m, n), size = m * n, b_size = n * s.columns;
  Vec<std::int32_t> pivots(static_cast<std::size_t>(k) + 1),
      permutation(static_cast<std::size_t>(m) + 1), order(static_cast<std::size_t>(n) + 1);
  for (Index at = begin; at < end; ++at) {
    switch (s.op) {
      case Op::cholesky: {
        T* l = w.result(0, at, size);
        cholesky(w.copy(0, at, size), n, l);
        w.put(0, at, l, size);
        break;
      }
      case Op::triangular_solve: {
        T* b = w.copy(1, at, b_size, true);
        triangular_solve(
            Triangle<T>{w.read(0, at, size), n, s.lower, s.transposed, s.unit_diagonal, false}, 0,
            n, b, s.columns, s.columns);
        w.put(0, at, b, b_size);
        break;
      }
      case Op::lu: {
        T* a = w.copy(0, at, size, true);
        lu(a, m, n, pivots.data(), permutation.data());
        w.put(0, at, a, size);
        if (results[1])
          std::copy_n(pivots.data(), k, static_cast<std::int32_t*>(results[1]) + at * k);
        if (results[2])
          std::copy_n(permutation.data(), m, static_cast<std::int32_t*>(results[2]) + at * m);
        break;
      }
      case Op::solve: {
        const T *b = w.read(s.factored ? 3 : 1, at, b_size), *factors = nullptr;
        T* x = w.result(0, at, b_size);
        if (s.factored) {
          factors = w.read(1, at, size);
          std::copy_n(static_cast<const std::int32_t*>(operands[2]) + at * n, n,
                      permutation.data());
        } else {
          T* a = w.copy(0, at, size);
          lu(a, n, n, pivots.data(), permutation.data());
          factors = a;
        }
        const bool far = real_dtype(s.dtype) == DType::f32 ? extreme_factors<float>(factors, n)
                                                           : extreme_factors<double>(factors, n);
        if (far)
          solve_scaled(w.copy(0, at, size), pivots.data(), permutation.data(), b, x, n, s.columns,
                       s.transposed);
        else solve(factors, permutation.data(), b, x, n, s.columns, s.transposed);
        w.put(0, at, x, b_size);
        break;
      }
      case Op::qr: {
        const Index between = s.full ? m : k;
        T *q = w.result(0, at, m * between), *r = w.result(1, at, between * n);
        T* a = w.copy(0, at, size);
        if (s.pivoted) qr_pivoted(a, m, n, between, q, r, order.data());
        else qr(a, m, n, between, q, r);
        if (s.pivoted && results[2])
          std::copy_n(order.data(), n, static_cast<std::int32_t*>(results[2]) + at * n);
        w.put(0, at, q, m * between);
        w.put(1, at, r, between * n);
        break;
      }
      case Op::eigh: {
        double* values = w.reals(n);
        T* v = s.vectors ? w.room(2, size) : nullptr;
        eigh(w.copy(0, at, size), n, values, v);
        w.put_reals(0, at, values, n);
        if (v) w.put(1, at, v, size);
        break;
      }
      case Op::svd: {
        const Index left = s.full ? m : k, right = s.full ? n : k;
        double* values = w.reals(k);
        T *u = s.vectors ? w.room(1, m * left) : nullptr, *vh = w.room(3, right * n);
        svd(w.copy(0, at, size), m, n, s.full, u, values, vh);
        w.put_reals(s.vectors ? 1 : 0, at, values, k);
        if (!u) break;
        w.put(0, at, u, m * left);
        w.put(2, at, vh, right * n);
        break;
      }
      case Op::eig: {
        const T* a = w.copy(0, at, size);
        RecycledVec<Complex> matrix(a, a + size), values = zeros<Complex>(n),
                                                  v = zeros<Complex>(s.vectors ? size : 0);
        matrix.emplace_back();  // never null
        eig<T>(matrix.data(), n, values.data(), s.vectors ? v.data() : nullptr);
        w.put_reals(0, at, reinterpret_cast<const double*>(values.data()), 2 * n);
        if (s.vectors) w.put_reals(1, at, reinterpret_cast<const double*>(v.data()), 2 * size);
        break;
      }
      default: {  // tridiagonal_solve
        T* b = w.copy(3, at, b_size, true);
        tridiagonal_solve(w.read(0, at, n), w.read(1, at, n), w.read(2, at, n), b, n, s.columns);
        w.put(0, at, b, b_size);
      }
    }
  }
}

}  // namespace vt::detail::linalg_kernels

namespace vt::detail {

std::int64_t LinalgSpec::operations() const {
  const std::int64_t least = std::min(m, n), cube = m * n * least;
  switch (op) {
    case Op::cholesky: return cube / 3;
    case Op::triangular_solve: return n * n * columns;
    case Op::lu: return cube;
    case Op::solve: return (factored ? 0 : cube) + 2 * n * n * columns;
    case Op::qr: return 4 * cube;
    case Op::tridiagonal_solve: return 8 * n * columns;
    default: return 20 * cube;
  }
}

std::size_t LinalgSpec::operands() const {
  if (op == Op::solve) return factored ? 4 : 2;
  return op == Op::triangular_solve ? 2 : op == Op::tridiagonal_solve ? 4 : 1;
}

// Copies of a matrix's operands and results, and what the algorithm works in, in blocks of powers
// of two.
std::size_t LinalgSpec::scratch_bytes() const {
  const auto size = static_cast<std::size_t>(m * n),
             least = static_cast<std::size_t>(std::min(m, n)),
             most = static_cast<std::size_t>(std::max(m, n));
  const auto right = static_cast<std::size_t>(n * columns),
             left = full ? static_cast<std::size_t>(m) * static_cast<std::size_t>(m)
                         : static_cast<std::size_t>(m) * least;
  const std::size_t below = (full ? most : least) * static_cast<std::size_t>(n),
                    copied = dtype == DType::c64 ? size : 0;
  const std::size_t number =
      is_complex(dtype) || op == Op::eig ? sizeof(linalg_kernels::Complex) : size_of(dtype);
  std::size_t bytes = 0;
  const auto add = [&](std::size_t blocks, std::size_t numbers) {
    bytes += numbers ? blocks * std::bit_ceil(numbers * number) : 0;
  };
  constexpr std::size_t panel = 64, rows = 96, wide = 480, deep = 256;  // and what products pack
  if (op != Op::tridiagonal_solve)
    add(1, (std::min(most, rows) + std::min(most, wide)) * std::min(most, deep));
  switch (op) {
    case Op::cholesky: add(1, size), add(1, copied); break;
    case Op::lu: add(1, copied), add(1, panel * most); break;
    case Op::triangular_solve: add(1, copied), add(1, right); break;
    case Op::solve: add(1, factored ? copied : size), add(3, right); break;
    case Op::qr:
      add(pivoted ? 2 : 1, size), add(1, left), add(1, below), add(1, least * most),
          add(2, panel * most);
      break;
    case Op::eigh: add(vectors ? 5 : 2, size), add(1, 16 * most); break;
    case Op::svd:
      add(1, size), add(1, below), add(vectors ? 6 : 2, least * least), add(vectors ? 1 : 0, left),
          add(m == n ? 0 : 3, least * most);
      break;
    case Op::eig: add(vectors ? 9 : 4, size); break;
    default: add(6, most), add(1, right);
  }
  return bytes;
}

LinalgSpec linalg_spec(const GraphBody& g, const Equation& e) {
  LinalgSpec s;
  s.op = e.op;
  const PartsParams* parts = e.params ? e.params->get_if<PartsParams>() : nullptr;
  // an axis of real and imaginary parts
  const std::size_t behind = parts && parts->operands ? 1 : 0;
  const Params* params = parts ? parts->own.get() : e.params.get();
  const Aval& a = g.aval(e.inputs[0]);
  s.dtype = behind ? complex_dtype(a.dtype) : a.dtype;
  const std::size_t own = e.op == Op::tridiagonal_solve ? 1 : 2, rank = a.shape.size() - behind;
  s.batch = 1;
  for (std::size_t i = 0; i + own < rank; ++i) s.batch *= a.shape[i];
  s.n = a.shape[rank - 1];
  s.m = own == 2 ? a.shape[rank - 2] : s.n;
  s.factored = e.op == Op::solve && e.inputs.size() == 4;
  if (e.inputs.size() > 1) {
    const Shape& b = g.aval(e.inputs[e.inputs.size() - 1]).shape;
    s.columns = b[b.size() - 1 - behind];
  }
  if (e.op == Op::triangular_solve) {
    const auto& p = params->as<TriangularParams>();
    s.lower = p.lower, s.transposed = p.transposed, s.unit_diagonal = p.unit_diagonal;
  }
  if (e.op == Op::solve) s.transposed = params->as<SolveParams>().transposed;
  if (e.op == Op::qr || e.op == Op::eigh || e.op == Op::svd || e.op == Op::eig) {
    const auto& p = params->as<DecompositionParams>();
    s.full = p.full, s.vectors = p.vectors, s.pivoted = p.pivoted;
  }
  return s;
}

void run_linalg(const LinalgSpec& s, const void* const* operands, void* const* results,
                std::int64_t begin, std::int64_t end) {
  if (is_complex(s.dtype))
    linalg_kernels::run<linalg_kernels::Complex>(s, operands, results, begin, end);
  else if (s.dtype == DType::f32) linalg_kernels::run<float>(s, operands, results, begin, end);
  else linalg_kernels::run<double>(s, operands, results, begin, end);
}

}  // namespace vt::detail
