// Factorisations and linear systems: operands brought to one dtype and batch, then the primitives
// of the linalg family.
#include <vt/linalg.hpp>

#include <algorithm>

#include <vt/control.hpp>
#include <vt/detail/message.hpp>

#include "../../record/scope.hpp"
#include "matrices.hpp"

namespace vt::detail::linalg {

Tensor matrix(std::string_view name, const Operand& x, CallSite where) {
  need(name, x.tensor, where);
  const DType d = x.tensor.dtype();
  if (d == f16 || d == bf16)
    refuse(ErrorKind::dtype, name,
           formatted("needs f32, f64, c64 or c128, not {}; convert it with astype(vt::f32)",
                     name_of(d)),
           x.tensor, where);
  const Tensor t = to_float(x.tensor, where);
  return cast(t, t.dtype(), where);
}

Tensor matrices(std::string_view name, const Operand& x, CallSite where) {
  Tensor t = matrix(name, x, where);
  if (t.rank() < 2) refuse(ErrorKind::shape, name, "needs at least two axes", t, where);
  return t;
}

Tensor square(std::string_view name, const Operand& x, CallSite where) {
  Tensor t = matrices(name, x, where);
  if (t.dim(-1) != t.dim(-2)) refuse(ErrorKind::shape, name, "needs square matrices", t, where);
  return t;
}

void meet(Tensor& a, Tensor& b, CallSite where) {
  const DType d = promote(a.dtype(), b.dtype());
  a = cast(a, d, where);
  b = cast(b, d, where);
}

Tensor matrix_transpose(const Tensor& x) { return swapaxes(x, -1, -2); }
Tensor adjoint(const Tensor& x) {
  return is_complex(x.dtype()) ? conj(matrix_transpose(x)) : matrix_transpose(x);
}

Tensor with_batch(const Tensor& x, const Shape& batch, CallSite where) {
  Shape shape = batch;
  shape.push_back(x.dim(-2));
  shape.push_back(x.dim(-1));
  return broadcast(x, shape, where);
}
Shape batch_of(const Tensor& x) {
  return Shape(std::span<const std::int64_t>(x.shape().begin(), x.shape().size() - 2));
}

/// The batch that matrices a and b share.
Shape common_batch(std::string_view name, const Tensor& a, const Tensor& b, CallSite where) {
  const Shape x = batch_of(a), y = batch_of(b);
  Shape batch;
  const std::size_t rank = std::max(x.size(), y.size());
  for (std::size_t i = 0; i < rank; ++i) {
    const std::int64_t m = i + x.size() < rank ? 1 : x[i + x.size() - rank],
                       n = i + y.size() < rank ? 1 : y[i + y.size() - rank];
    if (m != n && m != 1 && n != 1)
      refuse(ErrorKind::shape, name, "the axes before the last two do not broadcast", a, b, where);
    batch.push_back(m == 1 ? n : m);
  }
  return batch;
}

Tensor for_right_sides(std::string_view name, const Tensor& a, const Tensor& right, CallSite where,
                       FunctionRef<Tensor(const Tensor&, const Tensor&)> solve) {
  Tensor b = right;
  const bool vector = b.rank() == 1;
  if (b.rank() == 0)
    refuse(ErrorKind::shape, name, "the right side needs at least one axis", a, b, where);
  if (vector) b = reshaped(b, Shape{b.dim(0), 1}, where);
  const std::int64_t n = a.dim(-2);
  if (b.dim(-2) != n)
    refuse(ErrorKind::shape, name, formatted("the right side needs {} rows", n), a, right, where);
  Tensor x;
  if (a.rank() == 2 && b.rank() > 2) {
    // One matrix for a batch of right sides: they stand side by side.
    const int last = b.rank() - 1;
    Axes order{last - 1}, back;
    for (int i = 0; i < last - 1; ++i) order.push_back(i);
    order.push_back(last);
    for (int i = 1; i < last; ++i) back.push_back(i);
    back.push_back(0);
    back.push_back(last);
    const Tensor apart = permuted(b, order, where);
    const Tensor solved = solve(a, reshaped(apart, Shape{n, n == 0 ? 0 : apart.size() / n}, where));
    Shape shape = apart.shape();
    shape[0] = solved.dim(0);
    x = permuted(reshaped(solved, shape, where), back, where);
  } else {
    const Shape batch = common_batch(name, a, b, where);
    x = solve(with_batch(a, batch, where), with_batch(b, batch, where));
  }
  if (!vector) return x;
  Shape shape = x.shape();
  shape.pop_back();
  return reshaped(x, shape, where);
}

Tensor exponents(const Tensor& x, CallSite where) {
  const Tensor size = is_complex(x.dtype()) ? maximum(abs(real(x)), abs(imag(x))) : abs(x);
  const bool wide = size.dtype() == f64;
  return maximum(cast(bitcast(stop_gradient(size), wide ? i64 : i32), wide ? i64 : i32, where) >>
                     (wide ? 52 : 23),
                 2) -
         1;
}
Tensor power_of(const Tensor& exponent) {
  return exponent.dtype() == i64 ? bitcast(exponent << 52, f64) : bitcast(exponent << 23, f32);
}
Tensor power_of_matrices(const Tensor& a, CallSite where) {
  return a.size() == 0 ? vt::ones({}, real_dtype(a.dtype()), where)
                       : power_of(max(exponents(a, where), Axes{-2, -1}, true));
}

Factors factors(const Tensor& a, CallSite where) {
  const Tensor constant = stop_gradient(a);
  const SmallVec<Tensor, 1> lu = emit_all(Op::lu, {}, std::span<const Tensor>(&constant, 1), where);
  return {lu[0], lu[1], lu[2]};
}
Tensor solved(const Tensor& a, const Factors& f, const Tensor& b, CallSite where) {
  return emit(Op::solve, make_params(SolveParams{}), {a, f.lu, f.permutation, b}, where);
}
std::vector<Tensor> decomposed(Op op, const Tensor& a, DecompositionParams p, CallSite where) {
  const SmallVec<Tensor, 1> parts =
      emit_all(op, make_params(p), std::span<const Tensor>(&a, 1), where);
  return {parts.begin(), parts.end()};
}

/// The factors that make the first element of each column that is no smaller than 0.37 of its
/// largest positive. What is multiplied by them has the derivative of vectors whose phase is fixed,
/// whichever phase the derivative of the decomposition leaves.
inline Tensor phases(const Tensor& columns) {
  const Tensor lengths = abs(columns);
  const Tensor large = detail::cast(lengths >= 0.37 * max(lengths, -2, true), i32, {});
  return conj(sign(take_along_axis(columns, argmax(large, -2, true), -2)));
}

/// The order of rows that exchanges one after the other lead to.
inline Tensor permutation_of(const Tensor& pivots, std::int64_t rows, CallSite where) {
  Shape shape = pivots.shape();
  const int axis = pivots.rank() - 1;
  shape.back() = rows;
  const Tensor start = counted(i32, shape, axis, where);
  const auto exchange = [&](Tensor i, Tensor order) {
    const Tensor partner = take_along_axis(
        pivots, broadcast(i, sliced(pivots, axis, 0, 1, 1, where).shape(), where), axis);
    const Tensor place = counted(i32, shape, axis, where);
    const Tensor here = broadcast(i, partner.shape(), where);
    const Tensor mine = take_along_axis(order, here, axis),
                 other = take_along_axis(order, partner, axis);
    return vt::where(place == i, other, vt::where(place == partner, mine, order));
  };
  return pivots.dim(-1) == 0 ? start
                             : fori_loop(0, static_cast<int>(pivots.dim(-1)), exchange, start);
}

}  // namespace vt::detail::linalg

namespace vt::linalg {

namespace la = detail::linalg;
using detail::Op;

Tensor cholesky(Operand x, bool upper) {
  const detail::UserLine line(x.where);
  const Tensor l = detail::emit(Op::cholesky, {}, {la::square("cholesky", x, x.where)}, x.where);
  return upper ? la::adjoint(l) : l;
}

LuResult lu(Operand x) {
  const detail::UserLine line(x.where);
  const Tensor a = la::matrices("lu", x, x.where);
  const SmallVec<Tensor, 1> parts =
      detail::emit_all(Op::lu, {}, std::span<const Tensor>(&a, 1), x.where);
  return {parts[0], parts[1], parts[2]};
}

std::pair<Tensor, Tensor> lu_factor(Operand x) {
  LuResult parts = lu(std::move(x));
  return {std::move(parts.lu), std::move(parts.pivots)};
}

Tensor lu_solve(const std::pair<Tensor, Tensor>& factors, Operand b, bool transposed) {
  const CallSite w = b.where;
  const detail::UserLine line(w);
  Tensor lu = la::square("lu_solve", Operand(factors.first), w),
         right = la::matrix("lu_solve", b, w);
  detail::need("lu_solve", factors.second, w);
  Shape wanted = la::batch_of(lu);
  wanted.push_back(lu.dim(-1));
  if (factors.second.shape() != wanted || !is_int(factors.second.dtype()))
    detail::refuse(ErrorKind::shape, "lu_solve", "the pivots do not fit the factors", lu,
                   factors.second, w);
  la::meet(lu, right, w);
  const Tensor order = la::permutation_of(detail::cast(factors.second, i32, w), lu.dim(-1), w);
  return la::for_right_sides("lu_solve", lu, right, w, [&](const Tensor& a, const Tensor& y) {
    Shape rows = la::batch_of(a);
    rows.push_back(a.dim(-1));
    rows.push_back(1);
    const Tensor places = detail::broadcast(expand_dims(order, -1), rows, w);
    const auto triangle = [&](const Tensor& t, bool lower) {
      return detail::emit(Op::triangular_solve,
                          detail::make_params(detail::TriangularParams{lower, transposed, lower}),
                          {a, t}, w);
    };
    const auto in_order = [&](const Tensor& t, const Tensor& at) {
      return take_along_axis(t, detail::broadcast(at, t.shape(), w), -2);
    };
    if (!transposed) return triangle(triangle(in_order(y, places), true), false);
    return in_order(triangle(triangle(y, false), true), argsort(places, -2));
  });
}

std::pair<Tensor, bool> cho_factor(Operand x, bool lower) {
  return {cholesky(std::move(x), !lower), lower};
}

Tensor cho_solve(const std::pair<Tensor, bool>& factor, Operand b) {
  const CallSite w = b.where;
  const detail::UserLine line(w);
  Tensor c = la::square("cho_solve", Operand(factor.first), w),
         right = la::matrix("cho_solve", b, w);
  la::meet(c, right, w);
  return la::for_right_sides("cho_solve", c, right, w, [&](const Tensor& a, const Tensor& y) {
    const auto triangle = [&](const Tensor& t, bool transposed) {
      const bool conjugate = transposed && is_complex(t.dtype());
      const Tensor x = detail::emit(
          Op::triangular_solve,
          detail::make_params(detail::TriangularParams{factor.second, transposed, false}),
          {a, conjugate ? conj(t) : t}, w);
      return conjugate ? conj(x) : x;
    };
    return triangle(triangle(y, !factor.second), factor.second);
  });
}

QrResult qr(Operand x, std::string_view mode) {
  const detail::UserLine line(x.where);
  const Tensor a = la::matrices("qr", x, x.where);
  constexpr std::string_view known[] = {"reduced", "complete"};
  if (mode != "reduced" && mode != "complete")
    detail::refuse(ErrorKind::value, "qr",
                   detail::formatted("mode is neither \"reduced\" nor \"complete\" but \"{}\"{}",
                                     mode, detail::did_you_mean(mode, known)),
                   a, x.where);
  const std::vector<Tensor> parts = la::decomposed(Op::qr, a, {mode == "complete", true}, x.where);
  return {parts[0], parts[1]};
}

EighResult eigh(Operand x) {
  const detail::UserLine line(x.where);
  const std::vector<Tensor> parts =
      la::decomposed(Op::eigh, la::square("eigh", x, x.where), {}, x.where);
  return {parts[0], is_complex(parts[1].dtype()) && parts[1].size() > 0
                        ? parts[1] * la::phases(parts[1])
                        : parts[1]};
}
Tensor eigvalsh(Operand x) {
  const detail::UserLine line(x.where);
  return la::decomposed(Op::eigh, la::square("eigvalsh", x, x.where), {false, false}, x.where)[0];
}

EigResult eig(Operand x) {
  const detail::UserLine line(x.where);
  const std::vector<Tensor> parts =
      la::decomposed(Op::eig, la::square("eig", x, x.where), {}, x.where);
  return {parts[0], parts[1]};
}
Tensor eigvals(Operand x) {
  const detail::UserLine line(x.where);
  return la::decomposed(Op::eig, la::square("eigvals", x, x.where), {false, false}, x.where)[0];
}

SvdResult svd(Operand x, bool full_matrices) {
  const detail::UserLine line(x.where);
  const std::vector<Tensor> parts =
      la::decomposed(Op::svd, la::matrices("svd", x, x.where), {full_matrices, true}, x.where);
  const Tensor &u = parts[0], &s = parts[1], &vh = parts[2];
  if (!is_complex(u.dtype()) || s.size() == 0) return {u, s, vh};
  // Vectors without a singular value are as they are.
  const std::int64_t count = s.dim(-1);
  const auto scaled = [&](const Tensor& columns, const Tensor& by) {
    const Tensor product = slice_in_dim(columns, 0, count, -1) * by;
    return columns.dim(-1) == count
               ? product
               : concatenate({product, slice_in_dim(columns, count, columns.dim(-1), -1)}, -1);
  };
  const Tensor v = la::adjoint(vh);
  const Tensor by = la::phases(slice_in_dim(u.dim(-2) < v.dim(-2) ? v : u, 0, count, -1));
  return {scaled(u, by), s, la::adjoint(scaled(v, by))};
}
Tensor svdvals(Operand x) {
  const detail::UserLine line(x.where);
  return la::decomposed(Op::svd, la::matrices("svdvals", x, x.where), {false, false}, x.where)[0];
}

Tensor solve(Operand a, Operand b) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  Tensor matrix = la::square("solve", a, w), right = la::matrix("solve", b, w);
  la::meet(matrix, right, w);
  return la::for_right_sides("solve", matrix, right, w, [&](const Tensor& m, const Tensor& y) {
    return la::solved(m, la::factors(m, w), y, w);
  });
}

Tensor inv(Operand a) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  const Tensor m = la::square("inv", a, w);
  return la::solved(m, la::factors(m, w),
                    detail::broadcast(eye(m.dim(-1), m.dtype(), w), m.shape(), w), w);
}

Tensor triangular_solve(Operand a, Operand b, const TriangularSolveOptions& o) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  Tensor matrix = la::square("triangular_solve", a, w),
         right = la::matrices("triangular_solve", b, w);
  if (!o.left_side && right.dim(-1) != matrix.dim(-1))
    detail::refuse(
        ErrorKind::shape, "triangular_solve",
        detail::formatted("x a = b needs a b of {} columns ({{.left_side = true}} is for a x = b)",
                          matrix.dim(-1)),
        matrix, right, w);
  la::meet(matrix, right, w);
  const detail::ParamsRef p = detail::make_params(
      detail::TriangularParams{o.lower, o.transpose_a == o.left_side, o.unit_diagonal});
  const Tensor x = la::for_right_sides("triangular_solve", matrix,
                                       o.left_side ? right : la::matrix_transpose(right), w,
                                       [&](const Tensor& m, const Tensor& y) {
                                         return detail::emit(Op::triangular_solve, p, {m, y}, w);
                                       });
  return o.left_side ? x : la::matrix_transpose(x);
}

Tensor solve_triangular(Operand a, Operand b, Param<int> trans, bool lower, bool unit_diagonal) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  Tensor matrix = la::square("solve_triangular", a, w),
         right = la::matrix("solve_triangular", b, w);
  if (trans < 0 || trans > 2)
    detail::refuse(ErrorKind::value, "solve_triangular",
                   detail::formatted("trans must be 0, 1 or 2, not {}", trans), matrix, w);
  la::meet(matrix, right, w);
  const detail::ParamsRef p =
      detail::make_params(detail::TriangularParams{lower, trans != 0, unit_diagonal});
  const bool conjugate = trans == 2 && is_complex(matrix.dtype());
  const Tensor x = la::for_right_sides("solve_triangular", matrix, conjugate ? conj(right) : right,
                                       w, [&](const Tensor& m, const Tensor& y) {
                                         return detail::emit(Op::triangular_solve, p, {m, y}, w);
                                       });
  return conjugate ? conj(x) : x;
}

Tensor tridiagonal_solve(Operand dl, Operand d, Operand du, Operand b) {
  const CallSite w = dl.where;
  const detail::UserLine line(w);
  Tensor parts[4] = {la::matrix("tridiagonal_solve", dl, w), la::matrix("tridiagonal_solve", d, w),
                     la::matrix("tridiagonal_solve", du, w), la::matrix("tridiagonal_solve", b, w)};
  const bool vector = parts[3].rank() == 1;
  if (vector) parts[3] = expand_dims(parts[3], 1);
  if (parts[3].rank() == 0)
    detail::refuse(ErrorKind::shape, "tridiagonal_solve", "needs at least one axis", parts[3], w);
  for (int twice = 0; twice < 2; ++twice)
    for (int i = 0; i < 3; ++i) la::meet(parts[i], parts[i + 1], w);
  // The batches of the diagonals and of the right sides broadcast to each other, as those of
  // element-wise operands do.
  Shape batch = la::batch_of(parts[3]);
  for (int i = 0; i < 3; ++i) {
    if (parts[i].rank() == 0)
      detail::refuse(ErrorKind::shape, "tridiagonal_solve", "needs at least one axis", parts[i], w);
    const std::size_t own = static_cast<std::size_t>(parts[i].rank()) - 1;
    while (batch.size() < own) batch.insert(batch.begin(), 1);
    for (std::size_t k = 0; k < own; ++k)
      if (std::int64_t& extent = batch[batch.size() - own + k]; extent == 1)
        extent = parts[i].shape()[k];
  }
  Shape right_sides = batch;
  right_sides.push_back(parts[3].dim(-2));
  right_sides.push_back(parts[3].dim(-1));
  for (int i = 0; i < 3; ++i) {
    Shape diagonals = batch;
    diagonals.push_back(parts[3].dim(-2));
    if (!detail::broadcasts_to(parts[3].shape(), right_sides) ||
        !detail::broadcasts_to(parts[i].shape(), diagonals) || parts[i].dim(-1) != parts[3].dim(-2))
      detail::refuse(ErrorKind::shape, "tridiagonal_solve",
                     "the diagonals do not fit the right side", parts[i], b.tensor, w);
    parts[i] = detail::broadcast(parts[i], diagonals, w);
  }
  parts[3] = detail::broadcast(parts[3], right_sides, w);
  const Tensor x =
      detail::emit(Op::tridiagonal_solve, {}, {parts[0], parts[1], parts[2], parts[3]}, w);
  // Diagonals of a batch leave a vector for each.
  return vector ? squeeze(x, -1) : x;
}

}  // namespace vt::linalg
