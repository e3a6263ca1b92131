// Functions on matrices and small vectors: the diagonal family, triangles, kron, cross, polyval,
// matrix_power, covariance.
#include <algorithm>
#include <cstdlib>
#include <limits>

#include <vt/detail/message.hpp>

#include <vt/linalg.hpp>

#include "../support/contract.hpp"

namespace vt::detail {

Tensor diagonal_of(const Tensor& x, std::int64_t offset, int a, int b, CallSite where) {
  const int rank = x.rank();
  Axes permutation = other_axes(Axes({a, b}), rank);
  permutation.push_back(a);
  permutation.push_back(b);
  const Tensor t = permuted(x, permutation, where);
  const std::int64_t n = t.dim(rank - 2), m = t.dim(rank - 1);
  const std::int64_t count = std::max<std::int64_t>(
      0, std::min(n + std::min<std::int64_t>(offset, 0), m - std::max<std::int64_t>(offset, 0)));
  // In the flattened matrix the diagonal is every (m + 1)-th element.
  Shape flat(std::span<const std::int64_t>(t.shape().begin(), static_cast<std::size_t>(rank - 2)));
  flat.push_back(n * m);
  const std::int64_t first = count == 0 ? 0 : offset >= 0 ? offset : -offset * m;
  const std::int64_t limit = count == 0 ? 0 : first + (count - 1) * (m + 1) + 1;
  return sliced(reshaped(t, flat, where), rank - 2, first, limit, m + 1, where);
}

namespace matrices {

inline void need_matrix(std::string_view name, const Tensor& x, CallSite where) {
  need(name, x, where);
  if (x.rank() < 2) refuse(ErrorKind::shape, name, "needs at least two axes", x, where);
}

/// Row minus column of every element of an n × m matrix, as i64.
inline Tensor row(const Shape& matrix, CallSite where) { return counted(i64, matrix, 0, where); }
inline Tensor column(const Shape& matrix, CallSite where) { return counted(i64, matrix, 1, where); }
inline Shape last_two(const Tensor& x) { return Shape{x.dim(-2), x.dim(-1)}; }

/// x where the mask (over the last two axes) holds, else 0.
inline Tensor masked(const Tensor& x, const Tensor& mask, CallSite where) {
  const Aval& a = aval_of(x);
  return vt::where(broadcast(mask, a.shape, where), x,
                   full_tensor(Scalar(0).converted(a.dtype), Aval(a.dtype, Shape{}, a.weak)));
}

/// [..., n] broadcast to [..., rows, columns]: along the columns if `by_row`, else along the rows;
/// n is cut or padded to fit.
inline Tensor along_diagonal(const Tensor& d, std::int64_t rows, std::int64_t columns, bool by_row,
                             CallSite where) {
  const int last = d.rank() - 1;
  const std::int64_t wanted = by_row ? rows : columns;
  Tensor t = d;
  if (d.dim(last) != wanted) {
    PadParams p;
    p.low = p.interior = Shape::filled(d.shape().size(), 0);
    p.high = p.low;
    p.high[last] = wanted - d.dim(last);
    t = emit(Op::pad, make_params(std::move(p)),
             {d, full_tensor(Scalar(0).converted(d.dtype()), Aval(d.dtype(), Shape{}))}, where);
  }
  Shape shape = d.shape();
  shape.pop_back();
  shape.push_back(rows);
  shape.push_back(columns);
  Axes axes = Axes::first(last);
  axes.push_back(by_row ? last : last + 1);
  return broadcast_along(t, shape, axes, where);
}

/// The k-th diagonal of a square matrix of n + |k| rows holds x.
inline Tensor on_diagonal(std::string_view name, const Tensor& x, int k, CallSite where) {
  const std::int64_t n = x.dim(-1) + std::abs(static_cast<std::int64_t>(k));
  const Shape matrix{n, n};
  Shape whole = x.shape();
  whole.back() = n;
  whole.push_back(n);
  need_size(name, x.dtype(), whole, {&x, 1}, where);
  const Tensor broadcasted = along_diagonal(cast(x, x.dtype(), where), n, n, k >= 0, where);
  return masked(broadcasted,
                row(matrix, where) + static_cast<std::int64_t>(k) == column(matrix, where), where);
}

/// Component i of `axis`, which is dropped.
inline Tensor component(const Tensor& x, int axis, std::int64_t i, CallSite where) {
  Shape rest = x.shape();
  rest.erase(rest.begin() + axis);
  return reshaped(sliced(x, axis, i, i + 1, 1, where), rest, where);
}

/// Covariance: observations along the last axis of a matrix (or a vector, which gives a scalar).
inline Tensor covariance(std::string_view name, const Operand& x, bool rowvar, int ddof) {
  const CallSite w = x.where;
  need(name, x.tensor, w);
  if (x.tensor.rank() > 2)
    refuse(ErrorKind::shape, name, "needs a vector or a matrix", x.tensor, w);
  const Tensor given = to_float(x.tensor, w);
  Tensor t = widened(given, w);
  t = reshaped(t, t.rank() == 2 ? t.shape() : Shape{std::int64_t{1}, t.size()}, w);
  if (!rowvar && x.tensor.rank() == 2) t = matrix_transpose(t);
  const double count = static_cast<double>(t.dim(1));
  const Tensor centred = t - mean(t, 1, true);
  const Tensor products =
      matmul(centred, matrix_transpose(conj(centred))) / std::max(count - ddof, 0.0);
  const Tensor c = cast(products, given.dtype(), w);
  return c.dim(0) == 1 ? reshaped(c, Shape{}, w) : c;
}

}  // namespace matrices

}  // namespace vt::detail

namespace vt {

namespace mx = detail::matrices;

Tensor diagonal(Operand x, Param<int> offset, Param<int> axis1, Param<int> axis2) {
  mx::need_matrix("diagonal", x.tensor, x.where);
  const int a = detail::normal_axis("diagonal", axis1, x.tensor, x.where),
            b = detail::normal_axis("diagonal", axis2, x.tensor, x.where);
  if (a == b)
    detail::refuse(ErrorKind::shape, "diagonal",
                   detail::formatted("axes {} and {} are the same", axis1, axis2), x.tensor,
                   x.where);
  return detail::diagonal_of(x.tensor, offset, a, b, x.where);
}
Tensor diag(Operand x, Param<int> k) {
  const detail::UserLine line(x.where);
  detail::need("diag", x.tensor, x.where);
  if (x.tensor.rank() == 1) return mx::on_diagonal("diag", x.tensor, k, x.where);
  if (x.tensor.rank() != 2)
    detail::refuse(ErrorKind::shape, "diag", "needs a vector or a matrix", x.tensor, x.where);
  return detail::diagonal_of(x.tensor, k, 0, 1, x.where);
}
Tensor trace(Operand x, Param<int> offset) {
  const detail::UserLine line(x.where);
  mx::need_matrix("trace", x.tensor, x.where);
  return sum(detail::diagonal_of(x.tensor, offset, 0, 1, x.where), -1);
}
Tensor tril(Operand x, Param<int> k) {
  const detail::UserLine line(x.where);
  mx::need_matrix("tril", x.tensor, x.where);
  const Shape m = mx::last_two(x.tensor);
  return mx::masked(x.tensor,
                    mx::row(m, x.where) + static_cast<std::int64_t>(k) >= mx::column(m, x.where),
                    x.where);
}
Tensor triu(Operand x, Param<int> k) {
  const detail::UserLine line(x.where);
  mx::need_matrix("triu", x.tensor, x.where);
  const Shape m = mx::last_two(x.tensor);
  return mx::masked(x.tensor,
                    mx::row(m, x.where) + static_cast<std::int64_t>(k) <= mx::column(m, x.where),
                    x.where);
}
Tensor band_part(Operand x, Param<std::int64_t> lower, Param<std::int64_t> upper) {
  const detail::UserLine line(x.where);
  mx::need_matrix("band_part", x.tensor, x.where);
  const Shape m = mx::last_two(x.tensor);
  const Tensor below = mx::row(m, x.where) - mx::column(m, x.where);
  if (lower < 0 && upper < 0) return x.tensor;
  if (lower < 0) return mx::masked(x.tensor, below >= -upper, x.where);
  if (upper < 0) return mx::masked(x.tensor, below <= std::int64_t{lower}, x.where);
  return mx::masked(x.tensor, (below <= std::int64_t{lower}) & (below >= -upper), x.where);
}
Tensor matrix_diag(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("matrix_diag", x.tensor, x.where);
  if (x.tensor.rank() == 0)
    detail::refuse(ErrorKind::shape, "matrix_diag", "needs at least one axis", x.tensor, x.where);
  return mx::on_diagonal("matrix_diag", x.tensor, 0, x.where);
}
Tensor matrix_set_diag(Operand x, Operand diagonal) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  mx::need_matrix("matrix_set_diag", x.tensor, w);
  detail::need("matrix_set_diag", diagonal.tensor, w);
  const std::int64_t rows = x.tensor.dim(-2), columns = x.tensor.dim(-1);
  Shape wanted = x.tensor.shape();
  wanted.pop_back();
  wanted.back() = std::min(rows, columns);
  const Tensor& d = diagonal.tensor;
  if (d.shape() != wanted)
    detail::refuse(ErrorKind::shape, "matrix_set_diag",
                   detail::formatted("the diagonal must have shape {}", wanted.str()), x.tensor, d,
                   w);
  if (detail::category(d.dtype()) > detail::category(x.tensor.dtype()))
    detail::refuse(ErrorKind::dtype, "matrix_set_diag",
                   detail::formatted("{} does not hold the diagonal", name_of(x.tensor.dtype())),
                   x.tensor, d, w);
  const Tensor broadcasted =
      mx::along_diagonal(detail::cast(d, x.tensor.dtype(), w), rows, columns, rows <= columns, w);
  const Shape m = mx::last_two(x.tensor);
  return where(detail::broadcast(mx::row(m, w) == mx::column(m, w), x.tensor.shape(), w),
               broadcasted, x.tensor);
}

Tensor kron(Operand a, Operand b) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  detail::need("kron", a.tensor, w);
  detail::need("kron", b.tensor, w);
  const int rank = std::max(a.tensor.rank(), b.tensor.rank());
  Shape left, right, whole;  // every axis as (of a, of b)
  for (int i = 0; i < rank; ++i) {
    const int p = i - (rank - a.tensor.rank()), q = i - (rank - b.tensor.rank());
    const std::int64_t m = p < 0 ? 1 : a.tensor.dim(p), n = q < 0 ? 1 : b.tensor.dim(q);
    left.push_back(m);
    left.push_back(1);
    right.push_back(1);
    right.push_back(n);
    whole.push_back(detail::times(m, n));
  }
  const Tensor both[2] = {a.tensor, b.tensor};
  detail::need_size("kron", detail::promote(a.tensor.dtype(), b.tensor.dtype()), whole, both, w);
  return detail::reshaped(
      detail::reshaped(a.tensor, left, w) * detail::reshaped(b.tensor, right, w), whole, w);
}

Tensor cross(Operand a, Operand b, Param<int> axis) {
  const CallSite w = a.where;
  const detail::UserLine line(w);
  detail::need("cross", a.tensor, w);
  detail::need("cross", b.tensor, w);
  const int p = detail::normal_axis("cross", axis, a.tensor, w),
            q = detail::normal_axis("cross", axis, b.tensor, w);
  const std::int64_t m = a.tensor.dim(p), n = b.tensor.dim(q);
  if ((m != 2 && m != 3) || (n != 2 && n != 3))
    detail::refuse(ErrorKind::shape, "cross",
                   detail::formatted("axis {} must have 2 or 3 elements", axis), a.tensor, b.tensor,
                   w);
  auto x = [&](int i) { return mx::component(a.tensor, p, i, w); };
  auto y = [&](int i) { return mx::component(b.tensor, q, i, w); };
  Tensor z = x(0) * y(1) - x(1) * y(0);
  if (m == 2 && n == 2) return z;
  // A vector of two has no third component: what it would multiply is left out.
  const Tensor first = m == 2 ? x(1) * y(2) : n == 2 ? -(x(2) * y(1)) : x(1) * y(2) - x(2) * y(1);
  const Tensor second = m == 2 ? -(x(0) * y(2)) : n == 2 ? x(2) * y(0) : x(2) * y(0) - x(0) * y(2);
  return stack({first, second, z}, std::min<int>(axis, z.rank()), w);
}

Tensor polyval(Operand coefficients, Operand x) {
  const CallSite w = coefficients.where;
  const detail::UserLine line(w);
  detail::need("polyval", coefficients.tensor, w);
  detail::need("polyval", x.tensor, w);
  if (coefficients.tensor.rank() != 1)
    detail::refuse(ErrorKind::shape, "polyval", "the coefficients must be a vector",
                   coefficients.tensor, w);
  const Tensor operands[2] = {coefficients.tensor, x.tensor};
  detail::Common c = detail::common_dtype(operands);
  if (is_bool(c.dtype)) c.dtype = i32;
  detail::check_literals("polyval", operands, c.dtype, detail::Literal::value, w);
  const Tensor t = detail::cast(x.tensor, c.dtype, c.weak, w),
               p = detail::cast(coefficients.tensor, c.dtype, c.weak, w);
  Tensor result = detail::full_tensor(detail::Scalar(0).converted(c.dtype),
                                      detail::Aval(c.dtype, t.shape(), c.weak));
  for (std::int64_t i = 0; i < p.dim(0); ++i) {
    const Tensor term = mx::component(p, 0, i, w);
    result = i == 0 ? detail::broadcast(term, t.shape(), w) : result * t + term;
  }
  return result;
}

Tensor matrix_power(Operand x, Param<int> n) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  mx::need_matrix("matrix_power", x.tensor, w);
  if (x.tensor.dim(-1) != x.tensor.dim(-2))
    detail::refuse(ErrorKind::shape, "matrix_power", "needs square matrices", x.tensor, w);
  if (n == std::numeric_limits<int>::min())
    detail::refuse(ErrorKind::value, "matrix_power", "the power is too low", x.tensor, w);
  if (n < 0) return matrix_power(Operand(linalg::inv(x), w.file, w.line), -n);
  Tensor base = detail::to_number(x.tensor, w), result;
  if (n == 0) return detail::broadcast(eye(base.dim(-1), base.dtype(), w), base.shape(), w);
  for (unsigned k = static_cast<unsigned>(n);; base = matmul(base, base)) {
    if (k & 1u) result = result.defined() ? matmul(result, base) : base;
    k >>= 1;
    if (k == 0) return result;
  }
}

Tensor cov(Operand x, bool rowvar, Param<int> ddof) {
  const detail::UserLine line(x.where);
  return mx::covariance("cov", x, rowvar, ddof);
}
Tensor corrcoef(Operand x, bool rowvar) {
  const detail::UserLine line(x.where);
  const Tensor c = mx::covariance("corrcoef", x, rowvar, 1);
  if (c.rank() == 0) return c / c;
  const Tensor deviation = sqrt(detail::diagonal_of(c, 0, 0, 1, x.where));
  const Tensor scaled = c / detail::broadcast_along(deviation, c.shape(), Axes(0), x.where) /
                        detail::broadcast_along(deviation, c.shape(), Axes(1), x.where);
  if (is_complex(x.tensor.dtype()))
    return complex(clip(real(scaled), -1.0, 1.0), clip(imag(scaled), -1.0, 1.0));
  return clip(scaled, -1.0, 1.0);
}

}  // namespace vt
