// One equation of the linalg family, matrix after matrix: operands of any float dtype as doubles or complex numbers, and back.
#include "linalg_kernels.hpp"

#include <bit>

#include "linalg_spectra.hpp"

namespace vt::detail::linalg_kernels {

template <class To, class From>
void converted(const From* from, Index n, To* to) {
  for (Index i = 0; i < n; ++i) to[i] = static_cast<To>(from[i]);
}

/// The operands and results of one matrix after the other, as T.
template <class T>
class Work {
 public:
  static constexpr Index parts = sizeof(T) / sizeof(double);
  Work(DType dtype, const void* const* operands, void* const* results)
      : wide_(real_dtype(dtype) == DType::f64), operands_(operands), results_(results) {}
  /// Operand i of matrix `at`, `n` elements of it, as a copy; `in_result`: where the first result will be, if that can be.
  T* copy(std::size_t i, Index at, Index n, bool in_result = false) {
    T* to = in_result && wide_ && results_[0] ? static_cast<T*>(results_[0]) + at * n : room(i, n);
    double* x = reinterpret_cast<double*>(to);
    if (wide_) std::copy_n(static_cast<const double*>(operands_[i]) + at * n * parts, n * parts, x);
    else converted(static_cast<const float*>(operands_[i]) + at * n * parts, n * parts, x);
    return to;
  }
  T* room(std::size_t i, Index n) {
    rooms_[i].resize(static_cast<std::size_t>(n) + 1);  // never null
    return rooms_[i].data();
  }
  double* reals(Index n) {
    reals_.resize(static_cast<std::size_t>(n) + 1);
    return reals_.data();
  }
  void put(std::size_t i, Index at, const T* from, Index n) { put_reals(i, at, reinterpret_cast<const double*>(from), n * parts); }
  void put_reals(std::size_t i, Index at, const double* from, Index n) {
    if (!results_[i]) return;
    double* to = static_cast<double*>(results_[i]) + at * n;
    if (wide_ && from == to) return;
    if (wide_) std::copy_n(from, n, to);
    else converted(from, n, static_cast<float*>(results_[i]) + at * n);
  }

 private:
  bool wide_;
  const void* const* operands_;
  void* const* results_;
  RecycledVec<T> rooms_[8];
  RecycledVec<double> reals_;
};

template <class T>
void run(const LinalgSpec& s, const void* const* operands, void* const* results, Index begin, Index end) {
  Work<T> w(s.dtype, operands, results);
  const Index m = s.m, n = s.n, k = std::min(m, n), size = m * n, b_size = n * s.columns;
  Vec<std::int32_t> pivots(static_cast<std::size_t>(k) + 1), permutation(static_cast<std::size_t>(m) + 1);
  for (Index at = begin; at < end; ++at) {
    T* a = w.copy(0, at, s.op == Op::tridiagonal_solve ? n : size, s.op == Op::cholesky || s.op == Op::lu);
    switch (s.op) {
      case Op::cholesky:
        cholesky(a, n);
        w.put(0, at, a, size);
        break;
      case Op::triangular_solve: {
        T* b = w.copy(1, at, b_size);
        triangular_solve(Triangle<T>{a, n, s.lower, s.transposed, s.unit_diagonal, false}, 0, n, b, s.columns, s.columns);
        w.put(0, at, b, b_size);
        break;
      }
      case Op::lu:
        lu(a, m, n, pivots.data(), permutation.data());
        w.put(0, at, a, size);
        if (results[1]) std::copy_n(pivots.data(), k, static_cast<std::int32_t*>(results[1]) + at * k);
        if (results[2]) std::copy_n(permutation.data(), m, static_cast<std::int32_t*>(results[2]) + at * m);
        break;
      case Op::solve: {
        T *b = w.copy(s.factored ? 3 : 1, at, b_size), *x = w.room(4, b_size);
        if (s.factored) {
          a = w.copy(1, at, size);
          std::copy_n(static_cast<const std::int32_t*>(operands[2]) + at * n, n, permutation.data());
        } else {
          lu(a, n, n, pivots.data(), permutation.data());
        }
        solve(a, permutation.data(), b, x, n, s.columns, s.transposed);
        w.put(0, at, x, b_size);
        break;
      }
      case Op::qr: {
        const Index between = s.full ? m : k;
        T *q = w.room(1, m * between), *r = w.room(2, between * n);
        qr(a, m, n, between, q, r);
        w.put(0, at, q, m * between);
        w.put(1, at, r, between * n);
        break;
      }
      case Op::eigh: {
        double* values = w.reals(n);
        T* v = s.vectors ? w.room(2, size) : nullptr;
        eigh(a, n, values, v);
        w.put_reals(0, at, values, n);
        if (v) w.put(1, at, v, size);
        break;
      }
      case Op::svd: {
        const Index left = s.full ? m : k, right = s.full ? n : k;
        double* values = w.reals(k);
        T *u = s.vectors ? w.room(1, m * left) : nullptr, *vh = w.room(3, right * n);
        svd(a, m, n, s.full, u, values, vh);
        w.put_reals(s.vectors ? 1 : 0, at, values, k);
        if (!u) break;
        w.put(0, at, u, m * left);
        w.put(2, at, vh, right * n);
        break;
      }
      case Op::eig: {
        RecycledVec<Complex> matrix(a, a + size), values = zeros<Complex>(n), v = zeros<Complex>(s.vectors ? size : 0);
        matrix.emplace_back();  // never null
        eig(matrix.data(), n, sizeof(T) == sizeof(double), values.data(), s.vectors ? v.data() : nullptr);
        w.put_reals(0, at, reinterpret_cast<const double*>(values.data()), 2 * n);
        if (s.vectors) w.put_reals(1, at, reinterpret_cast<const double*>(v.data()), 2 * size);
        break;
      }
      default: {  // tridiagonal_solve
        T *d = w.copy(1, at, n), *above = w.copy(2, at, n), *b = w.copy(3, at, b_size);
        tridiagonal_solve(a, d, above, b, n, s.columns);
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

// The operands and results of a matrix in f64, and what the algorithm works in, in blocks of powers of two.
std::size_t LinalgSpec::scratch_bytes() const {
  const auto size = static_cast<std::size_t>(m * n), least = static_cast<std::size_t>(std::min(m, n)),
             most = static_cast<std::size_t>(std::max(m, n));
  const auto right = static_cast<std::size_t>(n * columns),
             left = full ? static_cast<std::size_t>(m) * static_cast<std::size_t>(m) : static_cast<std::size_t>(m) * least;
  const std::size_t below = (full ? most : least) * static_cast<std::size_t>(n), copied = real_dtype(dtype) == DType::f64 ? 0 : size;
  const std::size_t number = sizeof(double) * (is_complex(dtype) || op == Op::eig ? 2 : 1);
  std::size_t bytes = 0;
  const auto add = [&](std::size_t blocks, std::size_t numbers) { bytes += numbers ? blocks * std::bit_ceil(numbers * number) : 0; };
  constexpr std::size_t panel = 64, rows = 96, wide = 480, deep = 256;  // and what products pack
  if (op != Op::tridiagonal_solve) add(1, (std::min(most, rows) + std::min(most, wide)) * std::min(most, deep));
  switch (op) {
    case Op::cholesky:
    case Op::lu: add(1, copied), add(1, panel * most); break;
    case Op::triangular_solve: add(1, size), add(1, right); break;
    case Op::solve: add(factored ? 2 : 1, size), add(3, right); break;
    case Op::qr: add(1, size), add(1, left), add(1, below), add(1, least * most), add(2, panel * most); break;
    case Op::eigh: add(vectors ? 5 : 2, size), add(1, 16 * most); break;
    case Op::svd:
      add(1, size), add(1, below), add(vectors ? 6 : 2, least * least), add(vectors ? 1 : 0, left), add(m == n ? 0 : 3, least * most);
      break;
    case Op::eig: add(vectors ? 8 : 4, size); break;
    default: add(6, most), add(1, right);
  }
  return bytes;
}

LinalgSpec linalg_spec(const GraphBody& g, const Equation& e) {
  LinalgSpec s;
  s.op = e.op;
  const PartsParams* parts = e.params ? e.params->get_if<PartsParams>() : nullptr;
  const std::size_t behind = parts && parts->operands ? 1 : 0;  // an axis of real and imaginary parts
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
    s.full = p.full, s.vectors = p.vectors;
  }
  return s;
}

void run_linalg(const LinalgSpec& s, const void* const* operands, void* const* results, std::int64_t begin, std::int64_t end) {
  if (is_complex(s.dtype)) linalg_kernels::run<linalg_kernels::Complex>(s, operands, results, begin, end);
  else linalg_kernels::run<double>(s, operands, results, begin, end);
}

}  // namespace vt::detail
