// Shapes and axes of operands: NumPy's broadcasting, axis checks, and the shape ops that composed
// functions are made of.
#pragma once

#include <span>
#include <string_view>

#include <vt/ops.hpp>

#include "../../ir/graph.hpp"
#include "messages.hpp"

namespace vt::detail {

/// NumPy's common shape. Throws naming `name` and the operands.
Shape broadcast_shape(std::string_view name, std::span<const Tensor> operands, CallSite where);
/// Does NumPy's broadcasting take `from` to `to`?
bool broadcasts_to(const Shape& from, const Shape& to);
/// Broadcasts `t` to `shape` (rank extended on the left); the shapes are known to fit.
Tensor broadcast(const Tensor& t, const Shape& shape, CallSite where);
/// Operand axis i becomes axis axes[i] (increasing) of `shape`.
Tensor broadcast_along(const Tensor& t, const Shape& shape, const Axes& axes, CallSite where);
/// reshape, unless it is one already.
Tensor reshaped(const Tensor& t, const Shape& shape, CallSite where);
/// transpose, unless it is the identity.
Tensor permuted(const Tensor& t, const Axes& permutation, CallSite where);
/// Throws, naming the function, unless a shape that it computes is addressable. The ops it is made
/// of check theirs, but name themselves.
void need_size(std::string_view name, DType, const Shape&, std::span<const Tensor> operands,
               CallSite);
/// A checked leaf: every element `value`, which is converted.
Tensor filled(std::string_view name, Scalar value, DType dtype, const Shape& shape, CallSite where);
/// 0, 1, … along `axis`.
Tensor counted(DType dtype, const Shape& shape, int axis, CallSite where);
/// start + i · (stop − start) / steps for numbers i in f64, and with `endpoint` exactly `stop`
/// where i is `steps`: the numbers of linspace.
Tensor spaced(const Tensor& i, double start, double stop, std::int64_t steps, bool endpoint);
/// The elements start … limit − 1 of one axis.
Tensor sliced(const Tensor& t, int axis, std::int64_t start, std::int64_t limit,
              std::int64_t stride, CallSite where);

/// 0 ≤ result < rank. Throws naming the operand.
int normal_axis(std::string_view name, int axis, const Tensor& operand, CallSite where);
/// The same for an axis of a result of `rank` axes (stack, expand_dims …).
int normal_axis(std::string_view name, int axis, int rank, const Tensor& operand, CallSite where);
/// Normalised, no duplicates, in the order given.
Axes normal_axes(std::string_view name, const Axes& axes, int rank, const Tensor& operand,
                 CallSite where);
/// The axes of a reduction: sorted.
Axes reduction_axes(std::string_view name, const ReduceAxes& axes, const Tensor& operand,
                    CallSite where);
/// The axes 0 … rank − 1 that are not in `axes`.
Axes other_axes(const Axes& axes, int rank);
inline std::int64_t extent(const Shape& s, int axis) { return s[axis]; }
/// Product of the extents along `axes`.
std::int64_t extent_along(const Shape& s, const Axes& axes);

/// An element-wise primitive whose operands already fit: dtypes equal, each of the result's shape
/// or a scalar.
Tensor emit_fitting(Op op, ParamsRef params, std::span<const Tensor> operands, DType dtype,
                    bool weak, CallSite where);
/// A reduction of the primitive layer: sorted axes, dtype kept; none of the axes is no op at all.
Tensor reduced(Op op, const Tensor& t, const Axes& axes, CallSite where);

}  // namespace vt::detail
