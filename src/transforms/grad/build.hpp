// Short names for emitting primitives, which the differentiation rules are written in. No promotion
// and no broadcasting happens here: every operand already has the result's dtype, and its shape or
// rank 0. That keeps dtypes of tangents exact and is fast.
#pragma once

#include <cstddef>
#include <utility>

#include "../../trace/record/node.hpp"
#include "../../trace/record/scope.hpp"

namespace vt::detail::grad_build {

/// A strong rank-0 constant.
inline Tensor scalar(DType dtype, double value) {
  return full_tensor(Scalar(value).converted(dtype), Aval(dtype, Shape{}));
}
inline Tensor filled(const Aval& aval, double value) {
  return full_tensor(Scalar(value).converted(aval.dtype), Aval(aval.dtype, aval.shape));
}
inline Tensor zeros(const Aval& aval) { return filled(aval, 0); }
/// Memory whose elements are written before they are read.
inline Tensor unset(const Aval& aval) {
  const Aval strong(aval.dtype, aval.shape);
  return emit(Op::full, make_params(FullParams{Scalar(0).converted(aval.dtype), strong, true}), {},
              {});
}
inline Tensor zeros_like(const Tensor& t) { return zeros(aval_of(t)); }

inline Tensor unary(Op op, const Tensor& x) { return emit(op, {}, {x}, {}); }
inline Tensor binary(Op op, const Tensor& a, const Tensor& b) { return emit(op, {}, {a, b}, {}); }
inline Tensor choose(const Tensor& predicate, const Tensor& if_true, const Tensor& if_false) {
  return emit(Op::select, {}, {predicate, if_true, if_false}, {});
}
/// The predicate says where things come from, not by what values: see StructuralParams.
inline Tensor choose_by_place(const Tensor& predicate, const Tensor& if_true,
                              const Tensor& if_false) {
  return emit(Op::select, make_params(StructuralParams{}), {predicate, if_true, if_false}, {});
}
inline Tensor convert_to(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x : emit(Op::convert, make_params(ConvertParams{dtype}), {x}, {});
}
inline Tensor power(const Tensor& x, int exponent) {
  return emit(Op::integer_pow, make_params(IntegerPowParams{exponent}), {x}, {});
}

inline Tensor in_dim(const Tensor& x, const Shape& shape, const Axes& axes) {
  return emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {x}, {});
}
/// A scalar broadcast over `shape`; anything else unchanged.
inline Tensor broadcast_along(const Tensor& x, const Shape& shape) {
  return x.rank() == 0 && shape.rank() > 0 ? in_dim(x, shape, {}) : x;
}
inline Tensor with_shape(const Tensor& x, const Shape& shape) {
  return x.shape() == shape ? x : emit(Op::reshape, make_params(ShapeParams{shape}), {x}, {});
}
inline Tensor permuted(const Tensor& x, const Axes& permutation) {
  for (std::size_t i = 0; i < permutation.size(); ++i)
    if (permutation[i] != static_cast<int>(i))
      return emit(Op::transpose, make_params(PermutationParams{permutation}), {x}, {});
  return x;
}
inline Tensor sum_over(const Tensor& x, const Axes& axes) {
  return axes.empty() ? x : emit(Op::reduce_sum, make_params(AxesParams{axes}), {x}, {});
}
inline Tensor sum_all(const Tensor& x) { return sum_over(x, Axes::first(x.rank())); }
inline Tensor cumulate(Op op, const Tensor& x, int axis, bool reverse) {
  return emit(op, make_params(CumulativeParams{axis, reverse}), {x}, {});
}
inline Tensor padded(const Tensor& x, const Tensor& value, PadParams p) {
  return emit(Op::pad, make_params(std::move(p)), {x, value}, {});
}
inline Tensor sliced(const Tensor& x, SliceParams p) {
  return emit(Op::slice, make_params(std::move(p)), {x}, {});
}
/// Elements start, start + stride, … below limit of one axis.
inline Tensor slice_axis(const Tensor& x, int axis, std::int64_t start, std::int64_t limit,
                         std::int64_t stride = 1) {
  SliceParams p{Shape::filled(x.shape().size(), 0), x.shape(), Shape::filled(x.shape().size(), 1)};
  p.start[axis] = start;
  p.limit[axis] = limit;
  p.stride[axis] = stride;
  return sliced(x, std::move(p));
}
/// x moved by `by` places along an axis (towards higher indices if positive); `edge` comes in.
inline Tensor shifted(const Tensor& x, int axis, std::int64_t by, double edge) {
  PadParams p{Shape::filled(x.shape().size(), 0), Shape::filled(x.shape().size(), 0),
              Shape::filled(x.shape().size(), 0)};
  p.low[axis] = by;
  p.high[axis] = -by;
  return padded(x, scalar(x.dtype(), edge), std::move(p));
}
inline Tensor index_along(DType dtype, const Shape& shape, int axis) {
  return emit(Op::iota, make_params(IotaParams{Aval(dtype, shape), axis}), {}, {});
}
/// The smallest of i32 and i64 that counts to `n`.
inline DType index_type(std::int64_t n) { return n <= 0x7fffffff ? DType::i32 : DType::i64; }

/// The axes of a rank-`rank` operand that are not in `axes`.
inline Axes other_axes(int rank, const Axes& axes) {
  Axes others;
  for (int d = 0; d < rank; ++d)
    if (!axes.contains(d)) others.push_back(d);
  return others;
}
/// x read along an axis at `places`, an integer Tensor of x's shape but for that axis.
inline Tensor read_along(const Tensor& x, const Tensor& places, int axis) {
  Shape vectors = places.shape();
  vectors.push_back(1);
  GatherParams g;
  g.collapsed_slice_dims = Axes(axis);
  g.start_index_map = Axes(axis);
  g.operand_batching_dims = g.indices_batching_dims = other_axes(x.rank(), Axes(axis));
  g.slice_sizes = Shape::filled(x.shape().size(), 1);
  return emit(Op::gather, make_params(std::move(g)), {x, with_shape(places, vectors)}, {});
}
/// A reduced value put back over the axes it lost.
inline Tensor unreduced(const Tensor& x, const Shape& shape, const Axes& reduced) {
  return in_dim(x, shape, other_axes(shape.rank(), reduced));
}

/// Arithmetic on Tensors as formulas: `t * (1.0 - y * y)`. Numbers take the Tensor's dtype.
struct Val {
  Tensor t;
  Val(Tensor tensor) : t(std::move(tensor)) {}
  operator const Tensor&() const { return t; }
};
inline Val operator+(const Val& a, const Val& b) { return binary(Op::add, a.t, b.t); }
inline Val operator-(const Val& a, const Val& b) { return binary(Op::sub, a.t, b.t); }
inline Val operator*(const Val& a, const Val& b) { return binary(Op::mul, a.t, b.t); }
inline Val operator/(const Val& a, const Val& b) { return binary(Op::div, a.t, b.t); }
inline Val operator-(const Val& a) { return unary(Op::neg, a.t); }
inline Val operator+(double a, const Val& b) { return scalar(b.t.dtype(), a) + b; }
inline Val operator+(const Val& a, double b) { return a + Val(scalar(a.t.dtype(), b)); }
inline Val operator-(double a, const Val& b) { return scalar(b.t.dtype(), a) - b; }
inline Val operator-(const Val& a, double b) { return a - Val(scalar(a.t.dtype(), b)); }
inline Val operator*(double a, const Val& b) { return scalar(b.t.dtype(), a) * b; }
inline Val operator/(double a, const Val& b) { return scalar(b.t.dtype(), a) / b; }
inline Val operator/(const Val& a, double b) { return a / Val(scalar(a.t.dtype(), b)); }
inline Val exp_of(const Val& x) { return unary(Op::exp, x.t); }
inline Val sqrt_of(const Val& x) { return unary(Op::sqrt, x.t); }
inline Val rsqrt_of(const Val& x) { return unary(Op::rsqrt, x.t); }
inline Val sin_of(const Val& x) { return unary(Op::sin, x.t); }
inline Val cos_of(const Val& x) { return unary(Op::cos, x.t); }

/// a + b where an undefined Tensor is a symbolic zero.
inline Tensor sum_of(const Tensor& a, const Tensor& b) {
  if (!a.defined()) return b;
  return b.defined() ? binary(Op::add, a, b) : a;
}

}  // namespace vt::detail::grad_build
