// Shapes and axes of operands: NumPy's broadcasting, axis checks, and the shape ops that composed
// functions are made of.
#include "broadcasting.hpp"

#include <algorithm>
#include <string>

#include <vt/detail/message.hpp>

#include "promotion.hpp"

namespace vt::detail {

namespace broadcasting {

bool meet(const Shape& a, const Shape& b) {
  for (std::size_t i = 1; i <= std::min(a.size(), b.size()); ++i) {
    const std::int64_t m = a[a.size() - i], n = b[b.size() - i];
    if (m != n && m != 1 && n != 1) return false;
  }
  return true;
}

/// What would make one of two shapes fit the other, in words; empty where nothing simple does.
std::string remedy(std::span<const Tensor> operands) {
  if (operands.size() != 2) return "";
  const char* const names[] = {"first", "second"};
  for (const std::size_t k : {std::size_t{1}, std::size_t{0}}) {
    const Shape &own = aval_of(operands[k]).shape, &other = aval_of(operands[1 - k]).shape;
    if (own.size() > other.size()) continue;
    for (std::size_t axis = own.size(); axis > 0; --axis) {
      Shape longer = own;
      longer.insert(longer.begin() + static_cast<std::ptrdiff_t>(axis), 1);
      if (longer.size() <= other.size() && meet(longer, other))
        return formatted("; vt::expand_dims(…, {}) of the {} would fit", axis, names[k]);
    }
    if (own.size() == 2 && meet(Shape{own[1], own[0]}, other))
      return formatted("; vt::transpose of the {} would fit", names[k]);
  }
  return "";
}

}  // namespace broadcasting

Shape broadcast_shape(std::string_view name, std::span<const Tensor> operands, CallSite where) {
  std::size_t rank = 0;
  DType widest = bool_;
  for (const Tensor& t : operands) {
    rank = std::max(rank, aval_of(t).shape.size());
    if (size_of(aval_of(t).dtype) > size_of(widest)) widest = aval_of(t).dtype;
  }
  Shape result = Shape::filled(rank, 1);
  for (const Tensor& t : operands) {
    const Shape& s = aval_of(t).shape;
    const std::size_t shift = rank - s.size();
    for (std::size_t i = 0; i < s.size(); ++i) {
      std::int64_t& r = result[i + shift];
      if (r == s[i] || s[i] == 1) continue;
      if (r != 1)
        refuse(ErrorKind::shape, name,
               formatted("shapes do not broadcast, {} and {} at axis {}{}", r, s[i],
                         static_cast<std::int64_t>(i + shift) - static_cast<std::int64_t>(rank),
                         broadcasting::remedy(operands)),
               operands, where);
      r = s[i];
    }
  }
  need_size(name, widest, result, operands, where);
  return result;
}

bool broadcasts_to(const Shape& from, const Shape& to) {
  if (from.size() > to.size()) return false;
  const std::size_t shift = to.size() - from.size();
  for (std::size_t i = 0; i < from.size(); ++i)
    if (from[i] != to[i + shift] && from[i] != 1) return false;
  return all_of(to, [](std::int64_t d) { return d >= 0; });
}

Tensor broadcast_along(const Tensor& t, const Shape& shape, const Axes& axes, CallSite where) {
  const Aval& a = aval_of(t);
  if (a.shape == shape) return t;
  if (node_of(t)->op == Op::full) {
    need_size("broadcast_in_dim", a.dtype, shape, {&t, 1}, where);
    return full_tensor(node_of(t)->params->as<FullParams>().value, Aval(a.dtype, shape, a.weak));
  }
  return emit(Op::broadcast_in_dim, make_params(BroadcastParams{shape, axes}), {t}, where);
}

Tensor broadcast(const Tensor& t, const Shape& shape, CallSite where) {
  const Shape& from = aval_of(t).shape;
  if (from == shape) return t;
  const int shift = shape.rank() - from.rank();
  Axes axes;
  for (int i = 0; i < from.rank(); ++i) axes.push_back(i + shift);
  return broadcast_along(t, shape, axes, where);
}

Tensor reshaped(const Tensor& t, const Shape& shape, CallSite where) {
  const Aval& a = aval_of(t);
  if (a.shape == shape) return t;
  if (node_of(t)->op == Op::full && shape.elements() == a.elements())
    return full_tensor(node_of(t)->params->as<FullParams>().value, Aval(a.dtype, shape, a.weak));
  return emit(Op::reshape, make_params(ShapeParams{shape}), {t}, where);
}

Tensor permuted(const Tensor& t, const Axes& permutation, CallSite where) {
  bool identity = true;
  for (std::size_t i = 0; i < permutation.size(); ++i)
    identity = identity && permutation[i] == static_cast<int>(i);
  if (identity) return t;
  return emit(Op::transpose, make_params(PermutationParams{permutation}), {t}, where);
}

void need_size(std::string_view name, DType dtype, const Shape& shape,
               std::span<const Tensor> operands, CallSite where) {
  if (!addressable(dtype, shape))
    refuse(ErrorKind::shape, name, size_fault(dtype, shape), operands, where);
}

Tensor filled(std::string_view name, Scalar value, DType dtype, const Shape& shape,
              CallSite where) {
  need_size(name, dtype, shape, {}, where);
  return full_tensor(value.converted(dtype), Aval(dtype, shape));
}

Tensor counted(DType dtype, const Shape& shape, int axis, CallSite where) {
  return emit(Op::iota, make_params(IotaParams{Aval(dtype, shape), axis}),
              std::span<const Tensor>(), where);
}

Tensor sliced(const Tensor& t, int axis, std::int64_t start, std::int64_t limit,
              std::int64_t stride, CallSite where) {
  const Shape& shape = aval_of(t).shape;
  if (start == 0 && limit == extent(shape, axis) && stride == 1) return t;
  SliceParams p;
  p.start.resize(shape.size(), 0);
  p.limit = shape;
  p.stride.resize(shape.size(), 1);
  const std::size_t a = axis;
  p.start[a] = start;
  p.limit[a] = limit;
  p.stride[a] = stride;
  return emit(Op::slice, make_params(std::move(p)), {t}, where);
}

int normal_axis(std::string_view name, int axis, int rank, const Tensor& operand, CallSite where) {
  const int normal = axis < 0 ? axis + rank : axis;
  if (normal < 0 || normal >= rank)
    refuse(ErrorKind::shape, name, formatted("axis {} out of range for rank {}", axis, rank),
           operand, where);
  return normal;
}
int normal_axis(std::string_view name, int axis, const Tensor& operand, CallSite where) {
  return normal_axis(name, axis, aval_of(operand).shape.rank(), operand, where);
}

Axes normal_axes(std::string_view name, const Axes& axes, int rank, const Tensor& operand,
                 CallSite where) {
  Axes result;
  for (int axis : axes) {
    const int normal = normal_axis(name, axis, rank, operand, where);
    if (result.contains(normal))
      refuse(ErrorKind::shape, name, formatted("axes {} name axis {} twice", axes.str(), normal),
             operand, where);
    result.push_back(normal);
  }
  return result;
}

Axes reduction_axes(std::string_view name, const ReduceAxes& axes, const Tensor& operand,
                    CallSite where) {
  const int rank = aval_of(operand).shape.rank();
  if (axes.all()) return Axes::first(rank);
  Axes result = normal_axes(name, axes.axes(), rank, operand, where);
  insertion_sort(result);
  return result;
}

Axes other_axes(const Axes& axes, int rank) {
  Axes result;
  for (int i = 0; i < rank; ++i)
    if (!axes.contains(i)) result.push_back(i);
  return result;
}

std::int64_t extent_along(const Shape& s, const Axes& axes) {
  std::int64_t n = 1;
  for (int axis : axes) n *= extent(s, axis);
  return n;
}

Tensor emit_fitting(Op op, ParamsRef params, std::span<const Tensor> operands, DType dtype,
                    bool weak, CallSite where) {
  const Shape* shape = &aval_of(operands[0]).shape;
  for (const Tensor& t : operands.subspan(1))
    if (shape->empty()) shape = &aval_of(t).shape;
  where = user_line(where);
  if (size_of(dtype) > size_of(aval_of(operands[0]).dtype))
    need_size(name_of(op), dtype, *shape, operands, where);
  Node* n = place_node(op, std::move(params), operands, level_for(op, {}, operands, where), where);
  n->avals.emplace(dtype, *shape, weak);
  return adopted(n);
}

Tensor reduced(Op op, const Tensor& t, const Axes& axes, CallSite where) {
  if (axes.empty()) return t;
  return emit(op, make_params(AxesParams{axes}), {t}, where);
}

}  // namespace vt::detail
