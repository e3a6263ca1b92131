// Derivatives of linear algebra. Formulas: Giles 2008 (An extended collection of matrix derivative
// results for forward and reverse mode algorithmic differentiation); Seeger, Hetzel, Dai, Meissner
// and Lawrence 2017 (Auto-differentiating linear algebra); for lu de Hoog, Anderssen and Lukas
// 2011. All are written in ops that have derivatives themselves, so any order follows.
#include <algorithm>
#include <string>

#include "../build.hpp"
#include "../jvp.hpp"
#include "../transpose.hpp"

namespace vt::detail {

namespace matrix_build {

using namespace grad_build;

inline std::int64_t rows(const Tensor& x) { return x.dim(-2); }
inline std::int64_t columns(const Tensor& x) { return x.dim(-1); }

/// Matrices swapped at their last two axes.
inline Tensor matrix_transpose(const Tensor& x) {
  Axes order = Axes::first(x.rank());
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return permuted(x, order);
}
/// Conjugated as well.
inline Tensor adjoint(const Tensor& x) {
  const Tensor t = matrix_transpose(x);
  return is_complex(t.dtype()) ? unary(Op::conj, t) : t;
}
inline Tensor real_part(const Tensor& x) { return is_complex(x.dtype()) ? unary(Op::real, x) : x; }
/// Products of the last two axes, those in front in step.
inline Tensor product(const Tensor& a, const Tensor& b) {
  DotParams p;
  p.lhs_contract = Axes(a.rank() - 1);
  p.rhs_contract = Axes(b.rank() - 2);
  p.lhs_batch = p.rhs_batch = Axes::first(a.rank() - 2);
  p.dtype = a.dtype();
  return emit(Op::dot_general, make_params(std::move(p)), {a, b}, {});
}
inline Tensor difference(const Tensor& a, const Tensor& b) { return binary(Op::sub, a, b); }
inline Tensor sum(const Tensor& a, const Tensor& b) { return binary(Op::add, a, b); }
inline Tensor times(double factor, const Tensor& a) {
  return binary(Op::mul, scalar(a.dtype(), factor), a);
}
inline Tensor symmetric_part(const Tensor& a) { return times(0.5, sum(a, adjoint(a))); }

/// Where row − column compares with `k`: gt is the strict lower triangle for 0.
inline Tensor where_below(Op comparison, const Tensor& like, std::int64_t k) {
  const int rank = like.rank();
  const Tensor i = index_along(DType::i64, like.shape(), rank - 2),
               j = index_along(DType::i64, like.shape(), rank - 1);
  return binary(comparison, binary(Op::sub, i, j), scalar(DType::i64, static_cast<double>(k)));
}
inline Tensor kept(const Tensor& mask, const Tensor& x) {
  return choose(mask, x, scalar(x.dtype(), 0));
}
inline Tensor strictly_lower(const Tensor& x) { return kept(where_below(Op::gt, x, 0), x); }
inline Tensor upper(const Tensor& x) { return kept(where_below(Op::le, x, 0), x); }
inline Tensor identity_like(const Tensor& x) {
  return choose(where_below(Op::eq, x, 0), scalar(x.dtype(), 1), scalar(x.dtype(), 0));
}
/// The diagonals of square matrices, as vectors.
inline Tensor diagonal(const Tensor& x) {
  return sum_over(kept(where_below(Op::eq, x, 0), x), Axes(x.rank() - 1));
}
/// Vectors repeated: element j in column j (or row j) of matrices like `shape`.
inline Tensor in_columns(const Tensor& v, const Shape& shape) {
  Axes axes = Axes::first(shape.rank() - 2);
  axes.push_back(shape.rank() - 1);
  return in_dim(v, shape, axes);
}
inline Tensor in_rows(const Tensor& v, const Shape& shape) {
  return in_dim(v, shape, Axes::first(shape.rank() - 1));
}

inline Tensor triangular(const Tensor& a, const Tensor& b, TriangularParams p) {
  return emit(Op::triangular_solve, make_params(p), {a, b}, {});
}
/// a u⁻¹ for upper triangular u.
inline Tensor over_upper(const Tensor& a, const Tensor& u) {
  return matrix_transpose(triangular(u, matrix_transpose(a),
                                     {.lower = false, .transposed = true, .unit_diagonal = false}));
}
/// Rows of x in the order that `permutation` (one for each matrix) gives.
inline Tensor permuted_rows(const Tensor& x, const Tensor& permutation) {
  const int batch = x.rank() - 2;
  Shape vectors = permutation.shape();
  vectors.push_back(1);
  GatherParams g;
  g.offset_dims = Axes(x.rank() - 1);
  g.collapsed_slice_dims = g.start_index_map = Axes(batch);
  g.operand_batching_dims = g.indices_batching_dims = Axes::first(batch);
  g.slice_sizes = Shape::filled(x.shape().size(), 1);
  g.slice_sizes.back() = columns(x);
  return emit(Op::gather, make_params(std::move(g)), {x, with_shape(permutation, vectors)}, {});
}
/// More rows and columns, of zeros.
inline Tensor enlarged(const Tensor& x, std::int64_t more_rows, std::int64_t more_columns) {
  if (more_rows == 0 && more_columns == 0) return x;
  PadParams p;
  p.low = p.high = p.interior = Shape::filled(x.shape().size(), 0);
  p.high[p.high.size() - 2] = more_rows;
  p.high[p.high.size() - 1] = more_columns;
  return padded(x, scalar(x.dtype(), 0), std::move(p));
}
/// 1 / (b_j − b_i) off the diagonal, 0 on it: infinite where two are equal, as the derivatives of
/// their vectors are.
inline Tensor inverse_gaps(const Tensor& b, const Tensor& like) {
  const Tensor on = where_below(Op::eq, like, 0);
  const Tensor gaps = difference(in_columns(b, like.shape()), in_rows(b, like.shape()));
  return choose(on, scalar(b.dtype(), 0),
                binary(Op::div, scalar(b.dtype(), 1), choose(on, scalar(b.dtype(), 1), gaps)));
}

[[noreturn]] inline void refuse(const JvpCall& c, const char* what) {
  fail(ErrorKind::transform,
       "vt::" + std::string(name_of(c.equation.op)) + ": " + what + ": " + aval_of(c.x[0]).str(),
       c.equation.where);
}
inline std::vector<Tensor> run_again(const JvpCall& c, const ParamsRef& params) {
  const SmallVec<Tensor, 1> results = emit_all(c.equation.op, params, c.x, {});
  return {results.begin(), results.end()};
}

}  // namespace matrix_build

namespace jvp_rules {

// L̇ = L Φ(L⁻¹ Ṡ L⁻ᴴ), Φ the lower triangle with half the diagonal.
Tensor cholesky(const JvpCall& c) {
  using namespace matrix_build;
  const TriangularParams lower;
  const Tensor left = triangular(c.y, symmetric_part(c.t[0]), lower);
  const Tensor both = triangular(c.y, adjoint(left), lower);
  const Tensor phi =
      sum(strictly_lower(both), kept(where_below(Op::eq, both, 0), times(0.5, both)));
  return product(c.y, phi);
}

// op(A) ẋ = ḃ − op(Ȧ) x
Tensor triangular_solve(const JvpCall& c) {
  using namespace matrix_build;
  const auto& p = c.as<TriangularParams>();
  Tensor right = c.t[1];
  if (c.has(0)) {
    const Op inside = p.unit_diagonal ? (p.lower ? Op::gt : Op::lt) : (p.lower ? Op::ge : Op::le);
    const Tensor da = kept(where_below(inside, c.t[0], 0), c.t[0]);
    const Tensor moved = product(p.transposed ? matrix_transpose(da) : da, c.y);
    right = right.defined() ? difference(right, moved) : unary(Op::neg, moved);
  }
  return triangular(c.x[0], right, p);
}

void lu(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace matrix_build;
  results = run_again(c, c.equation.params);
  const Tensor& factors = results[0];
  const std::int64_t m = rows(factors), n = columns(factors), k = std::min(m, n);
  const int rank = factors.rank();
  // its upper triangle is never read
  const Tensor l = enlarged(slice_axis(factors, rank - 1, 0, k), 0, m - k);
  Tensor u = enlarged(upper(slice_axis(factors, rank - 2, 0, k)), n - k, 0);
  if (n > k) {  // ones below make it a square matrix with an inverse
    const Tensor is_below = binary(Op::ge, index_along(DType::i64, u.shape(), rank - 2),
                                   scalar(DType::i64, static_cast<double>(k)));
    u = choose(is_below, identity_like(u), u);
  }
  const Tensor unit_l = sum(strictly_lower(l), identity_like(l));
  const Tensor left = triangular(l, permuted_rows(c.t[0], results[2]),
                                 {.lower = true, .transposed = false, .unit_diagonal = true});
  const Tensor both = over_upper(left, u);
  tangents[0] = sum(product(unit_l, strictly_lower(both)), product(upper(both), u));
}

// With the matrix's own LU, which is not differentiated: A ẋ = ḃ − Ȧ x.
Tensor solve(const JvpCall& c) {
  using namespace matrix_build;
  const bool transposed = c.as<SolveParams>().transposed;
  const std::size_t last = c.x.size() - 1;
  Tensor right = c.t[last];
  if (c.has(0)) {
    const Tensor moved = product(transposed ? matrix_transpose(c.t[0]) : c.t[0], c.y);
    right = right.defined() ? difference(right, moved) : unary(Op::neg, moved);
  }
  if (!right.defined()) return {};  // only the factors vary, and they are constants here
  SmallVec<Tensor, 4> operands(c.x.begin(), c.x.end());
  operands[last] = right;
  return emit(Op::solve, c.equation.params,
              std::span<const Tensor>(operands.data(), operands.size()), {});
}

// For m ≥ n: Q̇ = Q (Ω − QᴴȦR⁻¹) + ȦR⁻¹, Ṙ = (QᴴȦR⁻¹ − Ω) R with skew Ω that has the strict lower
// triangle of QᴴȦR⁻¹, and the imaginary part of its diagonal, as that of R is real. A wide matrix
// is its first m columns and QᴴA of the others. Columns that are exchanged stay so.
void qr(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace matrix_build;
  const std::int64_t m = rows(c.x[0]), n = columns(c.x[0]);
  const int last = c.x[0].rank() - 1;
  if (c.as<DecompositionParams>().full && m > n)
    refuse(c,
           "the columns of a full Q beyond those of the matrix have no derivative; use reduced "
           "factors");
  results = run_again(c, c.equation.params);
  const Tensor &q = results[0], &whole = results[1];
  const auto in_order = [&](const Tensor& x) {
    if (!c.as<DecompositionParams>().pivoted) return x;
    return matrix_transpose(permuted_rows(matrix_transpose(x), results[2]));
  };
  const Tensor a = in_order(c.x[0]), change = in_order(c.t[0]);
  const Tensor r = n > m ? slice_axis(whole, last, 0, m) : whole;
  const Tensor da = n > m ? slice_axis(change, last, 0, m) : change;
  const Tensor scaled = over_upper(da, r), inside = product(adjoint(q), scaled);
  const Tensor low = strictly_lower(inside);
  Tensor skew = difference(low, adjoint(low));
  if (is_complex(inside.dtype())) {
    const Tensor on = kept(where_below(Op::eq, inside, 0), inside);
    skew = sum(skew, times(0.5, difference(on, unary(Op::conj, on))));
  }
  tangents[0] = sum(product(q, difference(skew, inside)), scaled);
  tangents[1] = product(difference(inside, skew), r);
  if (n <= m) return;
  const Tensor a_rest = slice_axis(a, last, m, n), da_rest = slice_axis(change, last, m, n);
  const Tensor dr_rest = sum(product(adjoint(tangents[0]), a_rest), product(adjoint(q), da_rest));
  tangents[1] = emit(Op::concatenate, make_params(AxisParams{last}), {tangents[1], dr_rest}, {});
}

// With C = Vᴴ Ṡ V: ẇ = diag C, V̇ = V (C / (w_j − w_i)).
void eigh(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace matrix_build;
  results = run_again(c, make_params(DecompositionParams{}));
  const Tensor &w = results[0], &v = results[1];
  const Tensor inside = product(product(adjoint(v), symmetric_part(c.t[0])), v);
  tangents[0] = real_part(diagonal(inside));
  if (c.as<DecompositionParams>().vectors)
    tangents[1] =
        product(v, binary(Op::mul, inverse_gaps(convert_to(w, inside.dtype()), inside), inside));
  else results.pop_back();
}

// With D = Uᴴ Ȧ V: ṡ = Re diag D; U̇ = U (F ∘ (D S + S Dᴴ)), V̇ = V (F ∘ (S D + Dᴴ S)),
// F = 1 / (s_j² − s_i²), and what Ȧ does outside the spaces of U and V. What turns the phases of
// both is given to U (as in JAX).
void svd(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace matrix_build;
  const auto& p = c.as<DecompositionParams>();
  const std::int64_t m = rows(c.x[0]), n = columns(c.x[0]);
  if (p.full && p.vectors && m != n)
    refuse(c, "full factors of a matrix that is not square have no derivative; use reduced ones");
  const std::vector<Tensor> all = run_again(c, make_params(DecompositionParams{}));
  const Tensor &u = all[0], &s = all[1], &vt = all[2], &da = c.t[0], v = adjoint(vt);
  const Tensor inside = product(product(adjoint(u), da), v);
  const Tensor ds = real_part(diagonal(inside));
  if (!p.vectors) {
    results = {s};
    tangents[0] = ds;
    return;
  }
  results = all;
  tangents[1] = ds;
  const Tensor lengths = convert_to(s, inside.dtype());
  const Tensor gaps = inverse_gaps(binary(Op::mul, lengths, lengths), inside);
  const Tensor by_column = binary(Op::mul, in_columns(lengths, inside.shape()), inside);
  const Tensor by_row = binary(Op::mul, in_rows(lengths, inside.shape()), inside);
  Tensor inner = binary(Op::mul, gaps, sum(by_column, adjoint(by_column)));
  if (is_complex(inside.dtype())) {
    const Tensor on = kept(where_below(Op::eq, inside, 0), inside);
    inner = sum(inner, binary(Op::div, times(0.5, difference(on, unary(Op::conj, on))),
                              in_columns(lengths, inside.shape())));
  }
  Tensor du = product(u, inner);
  Tensor dv = product(v, binary(Op::mul, gaps, sum(by_row, adjoint(by_row))));
  if (m > n) {
    const Tensor right = product(da, v);
    du = sum(du, binary(Op::div, difference(right, product(u, product(adjoint(u), right))),
                        in_columns(lengths, right.shape())));
  }
  if (n > m) {
    const Tensor left = product(adjoint(da), u);
    dv = sum(dv, binary(Op::div, difference(left, product(v, product(vt, left))),
                        in_columns(lengths, left.shape())));
  }
  tangents[0] = du;
  tangents[2] = adjoint(dv);
}

// With C = V⁻¹ Ȧ V: λ̇ = diag C, V̇ = V (C / (λ_j − λ_i)) + V diag c, where c keeps each vector's
// length and its largest element real.
void eig(const JvpCall& c, std::vector<Tensor>& results, std::vector<Tensor>& tangents) {
  using namespace matrix_build;
  results = run_again(c, make_params(DecompositionParams{}));
  const Tensor &w = results[0], &v = results[1];
  const Tensor moved = product(convert_to(c.t[0], v.dtype()), v);
  const Tensor inside = emit(Op::solve, make_params(SolveParams{}), {v, moved}, {});
  tangents[0] = diagonal(inside);
  if (!c.as<DecompositionParams>().vectors) {
    results.pop_back();
    return;
  }
  const Tensor across = product(v, binary(Op::mul, inverse_gaps(w, inside), inside));
  const int row_axis = v.rank() - 2;
  const Axes rows_axis(row_axis);
  // Of elements of one size the real one is the largest.
  const Tensor place =
      emit(Op::argmax, make_params(ArgParams{row_axis, DType::i64}), {unary(Op::real, v)}, {});
  const Tensor largest =
      binary(Op::eq, index_along(DType::i64, v.shape(), row_axis), in_columns(place, v.shape()));
  const auto of_largest = [&](const Tensor& x) { return sum_over(kept(largest, x), rows_axis); };
  const Tensor along = unary(
      Op::neg, unary(Op::real, sum_over(binary(Op::mul, unary(Op::conj, v), across), rows_axis)));
  const Tensor turning = unary(Op::neg, binary(Op::div, unary(Op::imag, of_largest(across)),
                                               unary(Op::real, of_largest(v))));
  const Tensor factor = emit(Op::complex, {}, {along, turning}, {});
  tangents[1] = sum(across, binary(Op::mul, v, in_columns(factor, v.shape())));
}

// T ẋ = ḃ − Ṫ x
Tensor tridiagonal_solve(const JvpCall& c) {
  using namespace matrix_build;
  const int axis = c.y.rank() - 2;
  Tensor right = c.t[3];
  const Tensor neighbours[3] = {c.has(0) ? shifted(c.y, axis, 1, 0) : Tensor(), c.y,
                                c.has(2) ? shifted(c.y, axis, -1, 0) : Tensor()};
  for (std::size_t i = 0; i < 3; ++i) {
    if (!c.has(i)) continue;
    const Tensor moved = binary(Op::mul, in_rows(c.t[i], c.y.shape()), neighbours[i]);
    right = right.defined() ? difference(right, moved) : unary(Op::neg, moved);
  }
  return emit(Op::tridiagonal_solve, {}, {c.x[0], c.x[1], c.x[2], right}, {});
}

}  // namespace jvp_rules

namespace transpose_rules {

void triangular_solve(const TransposeCall& c) {
  if (c.linear(0)) refuse(c);
  TriangularParams p = c.as<TriangularParams>();
  p.transposed = !p.transposed;
  c.cotangents[1] = matrix_build::triangular(c.x[0], c.ct(), p);
}

void solve(const TransposeCall& c) {
  const std::size_t last = c.x.size() - 1;
  SmallVec<Tensor, 4> operands(c.x.begin(), c.x.end());
  for (std::size_t i = 0; i < last; ++i)
    if (c.linear(i)) refuse(c);
  operands[last] = c.ct();
  const ParamsRef other = make_params(SolveParams{!c.as<SolveParams>().transposed});
  c.cotangents[last] =
      emit(Op::solve, other, std::span<const Tensor>(operands.data(), operands.size()), {});
}

// What stood below the diagonal of row i stands above that of row i − 1.
void tridiagonal_solve(const TransposeCall& c) {
  for (std::size_t i = 0; i < 3; ++i)
    if (c.linear(i)) refuse(c);
  const int axis = c.x[1].rank() - 1;
  c.cotangents[3] = emit(Op::tridiagonal_solve, {},
                         {grad_build::shifted(c.x[2], axis, 1, 0), c.x[1],
                          grad_build::shifted(c.x[0], axis, -1, 0), c.ct()},
                         {});
}

}  // namespace transpose_rules
}  // namespace vt::detail
