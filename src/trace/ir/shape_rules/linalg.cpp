// Shape rules of linear algebra (matrices in the last two axes, a batch in front) and of fft.
#include <algorithm>

#include <vt/detail/message.hpp>

#include "rules.hpp"

namespace vt::detail::shape_rules {

namespace linalg_shapes {

/// The extents of operand i in front of its last `own` axes.
inline Shape batch(const Call& c, std::size_t i, std::size_t own) {
  const Shape& shape = c.operand(i).shape;
  if (shape.size() < own)
    c.refuse_shape(own == 1 ? "needs at least one axis" : "needs at least two axes");
  return Shape(std::span<const std::int64_t>(shape.begin(), shape.size() - own));
}
inline Shape with(Shape batch, std::initializer_list<std::int64_t> own) {
  for (std::int64_t n : own) batch.push_back(n);
  return batch;
}
inline std::int64_t last(const Call& c, std::size_t i, std::size_t from_end) {
  const Shape& shape = c.operand(i).shape;
  return shape[shape.size() - from_end];
}
inline void need_square(const Call& c) {
  batch(c, 0, 2);
  if (last(c, 0, 1) != last(c, 0, 2)) c.refuse_shape("needs square matrices");
}
inline void need_floats(const Call& c) {
  for (std::size_t i = 0; i < c.operands.size(); ++i) {
    if (is_int(c.operand(i).dtype) && c.op == Op::solve && i == 2) continue;
    c.need_dtype(i);
    if (c.operand(i).dtype != c.operand(0).dtype) c.refuse_dtype("dtypes differ");
  }
}
/// The right sides fit square matrices [batch, n, n] at operand 0.
inline Avals right_sides(const Call& c, std::size_t b, const Shape& batch_of_a, std::int64_t n) {
  if (batch(c, b, 2) != batch_of_a) c.refuse_shape("the axes before the last two differ");
  if (last(c, b, 2) != n) c.refuse_shape(formatted("the right sides need {} rows", n));
  return result(c.operand(b).dtype, c.operand(b).shape);
}

}  // namespace linalg_shapes

Avals cholesky(const Call& c) {
  using namespace linalg_shapes;
  need_floats(c);
  need_square(c);
  return result(c.operand(0).dtype, c.operand(0).shape);
}

Avals triangular_solve(const Call& c) {
  using namespace linalg_shapes;
  (void)c.as<TriangularParams>();
  need_floats(c);
  need_square(c);
  return right_sides(c, 1, batch(c, 0, 2), last(c, 0, 1));
}

Avals lu(const Call& c) {
  using namespace linalg_shapes;
  need_floats(c);
  const Shape rows = batch(c, 0, 2);
  const std::int64_t m = last(c, 0, 2), n = last(c, 0, 1);
  Avals avals = result(c.operand(0).dtype, c.operand(0).shape);
  avals.emplace_back(DType::i32, with(rows, {std::min(m, n)}));
  avals.emplace_back(DType::i32, with(rows, {m}));
  return avals;
}

Avals solve(const Call& c) {
  using namespace linalg_shapes;
  (void)c.as<SolveParams>();
  if (c.operands.size() != 2 && c.operands.size() != 4)
    c.refuse_shape(formatted("takes 2 or 4 operands, not {}", c.operands.size()));
  need_floats(c);
  need_square(c);
  const Shape rows = batch(c, 0, 2);
  const std::int64_t n = last(c, 0, 1);
  if (c.operands.size() == 4) {
    if (c.operand(1).shape != c.operand(0).shape)
      c.refuse_shape("the factors differ in shape from the matrices");
    if (c.operand(2).dtype != DType::i32 || c.operand(2).shape != with(rows, {n}))
      c.refuse_shape("the permutation does not fit the matrices");
  }
  return right_sides(c, c.operands.size() - 1, rows, n);
}

Avals qr(const Call& c) {
  using namespace linalg_shapes;
  const auto& p = c.as<DecompositionParams>();
  need_floats(c);
  const Shape rows = batch(c, 0, 2);
  const std::int64_t m = last(c, 0, 2), n = last(c, 0, 1), k = p.full ? m : std::min(m, n);
  Avals avals = result(c.operand(0).dtype, with(rows, {m, k}));
  avals.emplace_back(c.operand(0).dtype, with(rows, {k, n}));
  if (p.pivoted) avals.emplace_back(DType::i32, with(rows, {n}));
  return avals;
}

Avals eigh(const Call& c) {
  using namespace linalg_shapes;
  const auto& p = c.as<DecompositionParams>();
  need_floats(c);
  need_square(c);
  Avals avals = result(real_dtype(c.operand(0).dtype), with(batch(c, 0, 2), {last(c, 0, 1)}));
  if (p.vectors) avals.push_back(Aval(c.operand(0).dtype, c.operand(0).shape));
  return avals;
}

Avals svd(const Call& c) {
  using namespace linalg_shapes;
  const auto& p = c.as<DecompositionParams>();
  need_floats(c);
  const Shape rows = batch(c, 0, 2);
  const std::int64_t m = last(c, 0, 2), n = last(c, 0, 1), k = std::min(m, n);
  const DType dtype = c.operand(0).dtype;
  if (!p.vectors) return result(real_dtype(dtype), with(rows, {k}));
  Avals avals = result(dtype, with(rows, {m, p.full ? m : k}));
  avals.emplace_back(real_dtype(dtype), with(rows, {k}));
  avals.emplace_back(dtype, with(rows, {p.full ? n : k, n}));
  return avals;
}

Avals eig(const Call& c) {
  using namespace linalg_shapes;
  const auto& p = c.as<DecompositionParams>();
  need_floats(c);
  need_square(c);
  const DType dtype = complex_dtype(real_dtype(c.operand(0).dtype));
  Avals avals = result(dtype, with(batch(c, 0, 2), {last(c, 0, 1)}));
  if (p.vectors) avals.push_back(Aval(dtype, c.operand(0).shape));
  return avals;
}

Avals tridiagonal_solve(const Call& c) {
  using namespace linalg_shapes;
  need_floats(c);
  const Shape rows = batch(c, 1, 1);
  const std::int64_t n = last(c, 1, 1);
  for (std::size_t i : {0u, 2u})
    if (c.operand(i).shape != c.operand(1).shape)
      c.refuse_shape("the three diagonals differ in shape");
  return right_sides(c, 3, rows, n);
}

Avals fft(const Call& c) {
  c.need_dtype();
  const auto& p = c.as<FftParams>();
  const Aval& x = c.operand(0);
  const std::size_t axes = p.lengths.size(), own = p.parts && p.kind != FftKind::rfft ? 1 : 0;
  const bool takes_complex = p.kind != FftKind::rfft, gives_complex = p.kind != FftKind::irfft;
  if (is_complex(x.dtype) != (takes_complex && !p.parts))
    c.refuse_dtype(takes_complex ? "needs complex numbers" : "needs real numbers");
  if (axes < 1 || axes > 3 || x.shape.size() < axes + own)
    c.refuse_shape(formatted("{} lengths for an operand of rank {}", axes, x.shape.rank()));
  if (own && x.shape.back() != 2) c.refuse_shape("the last axis must hold two parts");
  Shape shape(std::span<const std::int64_t>(x.shape.begin(), x.shape.size() - own));
  const std::size_t first = shape.size() - axes;
  for (std::size_t i = 0; i < axes; ++i) {
    const std::int64_t n = p.lengths[i], half = n / 2 + 1;
    const bool last = i + 1 == axes;
    if (n < 1) c.refuse_shape(formatted("a transform of {} points", n));
    if (shape[first + i] != (last && p.kind == FftKind::irfft ? half : n))
      c.refuse_shape(formatted("lengths {} do not fit axis {} of size {}", p.lengths.str(),
                               first + i, shape[first + i]));
    if (last) shape[first + i] = p.kind == FftKind::rfft ? half : n;
  }
  if (gives_complex && p.parts) shape.push_back(2);
  return result(gives_complex && !p.parts ? complex_dtype(x.dtype) : real_dtype(x.dtype),
                std::move(shape));
}

}  // namespace vt::detail::shape_rules
