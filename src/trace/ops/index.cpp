// Reading and writing parts of a Tensor: a[i], slices, dynamic slices, take, gather_nd,
// index_update and its kin, scatter_nd.
#include <algorithm>
#include <limits>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "support/indexing.hpp"

namespace vt::detail {

Tensor index_dtype(std::string_view name, const Tensor& index, std::int64_t extent,
                   CallSite where) {
  const Aval& a = aval_of(index);
  if (is_bool(a.dtype))
    refuse(ErrorKind::dtype, name,
           "a bool Tensor is no index, as the result's shape would depend on its values; use "
           "vt::where, or indices made by vt::nonzero with a size",
           index, where);
  if (!is_int(a.dtype)) refuse(ErrorKind::dtype, name, "indices must be integers", index, where);
  const bool narrow = extent <= std::numeric_limits<std::int32_t>::max();
  switch (a.dtype) {
    case DType::i8:
    case DType::i16:
    case DType::u8:
    case DType::u16:
    case DType::i32: return cast(index, narrow ? i32 : i64, where);
    case DType::u64:
      // Beyond every axis, and still so as a signed number.
      return cast(minimum(index, full_tensor(Scalar(std::uint64_t{1} << 62), Aval(u64, Shape{}))),
                  i64, where);
    default: return cast(index, i64, where);
  }
}

Tensor wrapped_index(std::string_view name, const Tensor& index, std::int64_t extent,
                     CallSite where) {
  const UserLine line(where);
  const DType given = aval_of(index).dtype;
  Tensor i = index_dtype(name, index, extent, where);
  const Node* n = node_of(i);
  if (is_unsigned(given) || n->op == Op::iota) return i;
  const DType d = aval_of(i).dtype;
  auto scalar = [&](std::int64_t v) {
    return full_tensor(Scalar(v).converted(d), Aval(d, Shape{}));
  };
  if (n->op == Op::full) {
    const std::int64_t v = n->params->as<FullParams>().value.integer;
    return v >= 0 ? i : full_tensor(Scalar(v + extent).converted(d), Aval(d, i.shape()));
  }
  return vt::where(i < scalar(0), i + scalar(extent), i);
}

Tensor with_index_axis(const Tensor& index, CallSite where) {
  Shape shape = index.shape();
  const Axes axes = Axes::first(shape.rank());
  shape.push_back(1);
  return broadcast_along(index, shape, axes, where);
}

void need_elements(std::string_view name, const Tensor& x, std::int64_t axis_extent,
                   const Tensor& index, CallSite where) {
  if (axis_extent == 0 && index.size() != 0)
    refuse(ErrorKind::shape, name, "nothing to read from an axis of size 0", x, index, where);
}

std::pair<std::int64_t, std::int64_t> resolved(std::string_view name, const Slice& s,
                                               std::int64_t n, const Tensor& x, CallSite where) {
  if (s.step == 0 || s.step == std::numeric_limits<std::int64_t>::min())
    refuse(ErrorKind::value, name, "the step of a slice must not be 0", x, where);
  const bool up = s.step > 0;
  auto bound = [&](std::int64_t i) {
    if (i < 0) i += n;
    return up ? std::clamp<std::int64_t>(i, 0, n) : std::clamp<std::int64_t>(i, -1, n - 1);
  };
  const std::int64_t start = s.start ? bound(*s.start) : up ? 0 : n - 1;
  const std::int64_t stop = s.stop ? bound(*s.stop) : up ? n : -1;
  if (up) return {start, stop > start ? (stop - start - 1) / s.step + 1 : 0};
  return {start, start > stop ? (start - stop - 1) / -s.step + 1 : 0};
}

std::int64_t place_on_axis(std::string_view name, std::int64_t i, int axis, const Tensor& x,
                           CallSite where) {
  const std::int64_t n = extent(x.shape(), axis), at = i < 0 ? i + n : i;
  if (at < 0 || at >= n)
    refuse(ErrorKind::value, name,
           formatted("index {} out of range for axis {} of size {}", i, axis, n), x, where);
  return at;
}

void need_order(std::string_view name, Op op, const Tensor& x, CallSite where) {
  if ((op == Op::scatter_min || op == Op::scatter_max) && is_complex(x.dtype()))
    refuse(ErrorKind::dtype, name,
           "complex numbers have no order; compare vt::real, vt::imag or vt::abs", x, where);
}

Tensor fitting_values(std::string_view name, const Tensor& x, const Tensor& values,
                      CallSite where) {
  const Aval &a = aval_of(x), &v = aval_of(values);
  if (category(v.dtype) > category(a.dtype))
    refuse(
        ErrorKind::dtype, name,
        formatted("{} does not hold the values; convert them with astype first", name_of(a.dtype)),
        x, values, where);
  check_literals(name, {&values, 1}, a.dtype, Literal::value, where);
  note_lost_digits(name, x, values, where);
  return cast(values, a.dtype, where);
}

GatherParams along_axis(std::string_view name, const Tensor& x, const Tensor& indices, int axis,
                        Shape& shape, CallSite where) {
  const int rank = x.rank();
  if (indices.rank() != rank)
    refuse(ErrorKind::shape, name, "indices and operand differ in rank", x, indices, where);
  shape = indices.shape();
  GatherParams p;
  for (int i = 0; i < rank; ++i) {
    const std::int64_t n = x.dim(i), m = indices.dim(i);
    if (i == axis) {
      p.collapsed_slice_dims.push_back(i);
    } else if (n == m || m == 1) {
      shape[i] = n;
      p.operand_batching_dims.push_back(i);
      p.indices_batching_dims.push_back(i);
    } else if (n == 1) {
      p.collapsed_slice_dims.push_back(i);  // at 0 whatever the index, as if broadcast
    } else {
      refuse(ErrorKind::shape, name, formatted("axis {} does not broadcast", i), x, indices, where);
    }
    p.slice_sizes.push_back(1);
  }
  p.start_index_map.push_back(axis);
  p.mode = IndexMode::clip;
  return p;
}

namespace index_ops {

/// Windows of full width in all axes but `axis`, at the (already wrapped) indices.
inline Tensor taken(const Tensor& x, const Tensor& index, int axis, CallSite where) {
  GatherParams p;
  const int rank = x.rank(), more = index.rank();
  for (int i = 0; i < axis; ++i) p.offset_dims.push_back(i);
  for (int i = axis + 1; i < rank; ++i) p.offset_dims.push_back(i - 1 + more);
  p.collapsed_slice_dims.push_back(axis);
  p.start_index_map.push_back(axis);
  p.slice_sizes = x.shape();
  p.slice_sizes[axis] = 1;
  p.mode = IndexMode::clip;
  return emit(Op::gather, make_params(std::move(p)), {x, with_index_axis(index, where)}, where);
}

inline Tensor ranged(const Tensor& x, const Slice& s, CallSite where) {
  if (x.rank() == 0)
    refuse(ErrorKind::shape, "Tensor::operator[]", "a scalar has no axis to slice", x, where);
  const auto [first, count] = resolved("Tensor::operator[]", s, x.dim(0), x, where);
  if (count == 0) return sliced(x, 0, 0, 0, 1, where);
  const std::int64_t last = first + (count - 1) * s.step;
  if (s.step > 0) return sliced(x, 0, first, last + 1, count > 1 ? s.step : 1, where);
  const Tensor ascending = sliced(x, 0, last, first + 1, count > 1 ? -s.step : 1, where);
  return count > 1 ? emit(Op::rev, make_params(AxesParams{Axes(0)}), {ascending}, where)
                   : ascending;
}

inline Tensor element(const Tensor& x, std::int64_t i, CallSite where) {
  if (x.rank() == 0)
    refuse(ErrorKind::shape, "Tensor::operator[]", "a scalar has no axis to index", x, where);
  const std::int64_t at = place_on_axis("Tensor::operator[]", i, 0, x, where);
  Shape rest = x.shape();
  rest.erase(rest.begin());
  return reshaped(sliced(x, 0, at, at + 1, 1, where), rest, where);
}

inline Tensor written(Op op, std::string_view name, Operand& x, Operand& indices, Operand& values) {
  const CallSite w = user_line(x.where);
  need(name, x.tensor, w);
  need(name, indices.tensor, w);
  need(name, values.tensor, w);
  if (x.tensor.rank() == 0)
    refuse(ErrorKind::shape, name, "a scalar has no axis to index", x.tensor, w);
  if (is_bool(x.tensor.dtype()) && op != Op::scatter)
    refuse(ErrorKind::dtype, name, "needs numbers, not bools", x.tensor, w);
  need_order(name, op, x.tensor, w);
  const Tensor operand = cast(x.tensor, x.tensor.dtype(), w);
  const Tensor index = wrapped_index(name, indices.tensor, operand.dim(0), w);
  Shape shape = index.shape();
  for (int i = 1; i < operand.rank(); ++i) shape.push_back(operand.dim(i));
  const Tensor update = fitting_values(name, operand, values.tensor, w);
  if (!broadcasts_to(update.shape(), shape))
    refuse(ErrorKind::shape, name, formatted("the values do not broadcast to {}", shape.str()),
           x.tensor, values.tensor, w);
  ScatterParams p;
  for (int i = index.rank(); i < shape.rank(); ++i) p.update_window_dims.push_back(i);
  p.inserted_window_dims.push_back(0);
  p.scatter_dims_to_operand_dims.push_back(0);
  p.mode = IndexMode::fill;
  return emit(op, make_params(std::move(p)),
              {operand, with_index_axis(index, w), broadcast(update, shape, w)}, w);
}

/// Index vectors (the last axis of `indices`) into the leading axes of `shape`, negative components
/// counted from the end.
inline Tensor wrapped_vectors(std::string_view name, const Tensor& indices, const Shape& shape,
                              CallSite where) {
  if (indices.rank() == 0)
    refuse(ErrorKind::shape, name, "the indices need a last axis that holds index vectors", indices,
           where);
  const std::int64_t k = indices.dim(-1);
  if (k > shape.rank())
    refuse(ErrorKind::shape, name,
           formatted("index vectors of {} components address {} axes, those of {}", k, shape.rank(),
                     shape.str()),
           indices, where);
  std::int64_t widest = 0;
  for (std::int64_t d : shape) widest = std::max(widest, d);
  const bool natural = is_unsigned(indices.dtype());
  Tensor i = index_dtype(name, indices, widest, where);
  if (natural || k == 0) return i;
  const Vec<std::int64_t> dims(shape.begin(), shape.begin() + k);
  const bool same = all_of(dims, [&](std::int64_t d) { return d == dims[0]; });
  const Tensor extents =
      same ? full_tensor(Scalar(dims[0]).converted(i.dtype()), Aval(i.dtype(), Shape{}))
           : cast(from_host(dims.data(), i64, Shape{k}, true, where), i.dtype(), where);
  return vt::where(i < 0, i + extents, i);
}

/// One start per axis, all of one dtype.
inline void append_starts(std::string_view name, SmallVec<Tensor, 8>& operands, const Tensor& x,
                          TensorSpan start, CallSite where) {
  if (static_cast<int>(start.size()) != x.rank())
    refuse(ErrorKind::shape, name, formatted("{} starts for rank {}", start.size(), x.rank()), x,
           where);
  std::int64_t widest = 0;
  for (std::int64_t d : x.shape()) widest = std::max(widest, d);
  bool wide = false;
  std::vector<Tensor> all;
  for (const Tensor& s : start) {
    need(name, s, where);
    if (s.rank() != 0) refuse(ErrorKind::shape, name, "starts must be scalars", x, s, where);
    all.push_back(index_dtype(name, s, widest, where));
    wide = wide || all.back().dtype() == i64;
  }
  for (Tensor& s : all) operands.push_back(cast(std::move(s), wide ? i64 : i32, where));
}

inline std::vector<Tensor> start_along(const Tensor& x, const Tensor& start, int axis) {
  std::vector<Tensor> all(static_cast<std::size_t>(x.rank()), Tensor(0));
  all[axis] = start;
  return all;
}

/// x, which is there, with `update` at `start`.
inline Tensor updated(std::string_view name, const Operand& x, const Operand& update,
                      TensorSpan start) {
  const CallSite w = x.where;
  const UserLine line(w);
  need(name, update.tensor, w);
  SmallVec<Tensor, 8> operands;
  operands.push_back(cast(x.tensor, x.tensor.dtype(), w));
  operands.push_back(fitting_values(name, x.tensor, update.tensor, w));
  append_starts(name, operands, x.tensor, start, w);
  return emit(Op::dynamic_update_slice, {},
              std::span<const Tensor>(operands.data(), operands.size()), w);
}

}  // namespace index_ops

}  // namespace vt::detail

namespace vt {

namespace ix = detail::index_ops;

Tensor Tensor::operator[](const Index& index) const {
  const CallSite w = detail::user_line(index.where);
  detail::need("Tensor::operator[]", *this, w);
  if (index.kind == Index::Kind::number) return ix::element(*this, index.number, w);
  if (index.kind == Index::Kind::slice) return ix::ranged(*this, index.range, w);
  if (index.kind != Index::Kind::tensor)
    return detail::elements_at("Tensor::operator[]", *this, {&index, 1}, w);
  detail::need("Tensor::operator[]", index.tensor, w);
  if (rank() == 0)
    detail::refuse(ErrorKind::shape, "Tensor::operator[]", "a scalar has no axis to index", *this,
                   w);
  detail::need_elements("Tensor::operator[]", *this, dim(0), index.tensor, w);
  return ix::taken(*this, detail::wrapped_index("Tensor::operator[]", index.tensor, dim(0), w), 0,
                   w);
}

Tensor slice(Operand x, const Shape& start, const Shape& limit, const Shape& stride) {
  detail::need("slice", x.tensor, x.where);
  detail::SliceParams p{start, limit, stride};
  if (p.stride.empty()) p.stride = Shape::filled(x.tensor.shape().size(), 1);
  return detail::emit(detail::Op::slice, detail::make_params(std::move(p)), {x.tensor}, x.where);
}
Tensor slice_in_dim(Operand x, Param<std::int64_t> start, Param<std::int64_t> limit,
                    Param<int> axis, Param<std::int64_t> stride) {
  detail::need("slice_in_dim", x.tensor, x.where);
  const int along = detail::normal_axis("slice_in_dim", axis, x.tensor, x.where);
  const std::int64_t n = x.tensor.dim(along);
  const std::int64_t first = start + (start < 0 ? n : 0), end = limit + (limit < 0 ? n : 0);
  if (first < 0 || first > end || end > n || stride < 1)
    detail::refuse(ErrorKind::shape, "slice_in_dim",
                   detail::formatted("{} to {} by {} leaves axis {} of size {}", start, limit,
                                     stride, along, n),
                   x.tensor, x.where);
  return detail::sliced(x.tensor, along, first, end, stride, x.where);
}

Tensor dynamic_slice(Operand x, TensorSpan start, const Shape& sizes) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("dynamic_slice", x.tensor, w);
  SmallVec<Tensor, 8> operands;
  operands.push_back(x.tensor);
  ix::append_starts("dynamic_slice", operands, x.tensor, start, w);
  return detail::emit(detail::Op::dynamic_slice, detail::make_params(detail::ShapeParams{sizes}),
                      std::span<const Tensor>(operands.data(), operands.size()), w);
}
Tensor dynamic_update_slice(Operand x, Operand update, TensorSpan start) {
  detail::need("dynamic_update_slice", x.tensor, x.where);
  return ix::updated("dynamic_update_slice", x, update, start);
}
Tensor dynamic_slice_in_dim(Operand x, Operand start, Param<std::int64_t> size, Param<int> axis) {
  detail::need("dynamic_slice_in_dim", x.tensor, x.where);
  const int along = detail::normal_axis("dynamic_slice_in_dim", axis, x.tensor, x.where);
  Shape sizes = x.tensor.shape();
  sizes[along] = size;
  return dynamic_slice(x, ix::start_along(x.tensor, start.tensor, along), sizes);
}
Tensor dynamic_update_slice_in_dim(Operand x, Operand update, Operand start, Param<int> axis) {
  detail::need("dynamic_update_slice_in_dim", x.tensor, x.where);
  const int along = detail::normal_axis("dynamic_update_slice_in_dim", axis, x.tensor, x.where);
  return ix::updated("dynamic_update_slice_in_dim", x, update,
                     ix::start_along(x.tensor, start.tensor, along));
}

Tensor take(Operand x, Operand indices, std::optional<Param<int>> axis) {
  const CallSite w = x.where;
  detail::need("take", x.tensor, w);
  detail::need("take", indices.tensor, w);
  const Tensor t = axis ? x.tensor : detail::reshaped(x.tensor, Shape{x.tensor.size()}, w);
  const int along = axis ? detail::normal_axis("take", *axis, x.tensor, w) : 0;
  detail::need_elements("take", x.tensor, t.dim(along), indices.tensor, w);
  return ix::taken(t, detail::wrapped_index("take", indices.tensor, t.dim(along), w), along, w);
}

Tensor take_along_axis(Operand x, Operand indices, Param<int> axis) {
  const CallSite w = x.where;
  detail::need("take_along_axis", x.tensor, w);
  detail::need("take_along_axis", indices.tensor, w);
  const int along = detail::normal_axis("take_along_axis", axis, x.tensor, w);
  Shape shape;
  detail::GatherParams p =
      detail::along_axis("take_along_axis", x.tensor, indices.tensor, along, shape, w);
  detail::need_elements("take_along_axis", x.tensor, x.tensor.dim(along), indices.tensor, w);
  const Tensor index =
      detail::wrapped_index("take_along_axis", indices.tensor, x.tensor.dim(along), w);
  return detail::emit(detail::Op::gather, detail::make_params(std::move(p)),
                      {x.tensor, detail::with_index_axis(detail::broadcast(index, shape, w), w)},
                      w);
}

Tensor index_update(Operand x, Operand indices, Operand values) {
  return ix::written(detail::Op::scatter, "index_update", x, indices, values);
}
Tensor index_add(Operand x, Operand indices, Operand values) {
  return ix::written(detail::Op::scatter_add, "index_add", x, indices, values);
}
Tensor index_mul(Operand x, Operand indices, Operand values) {
  return ix::written(detail::Op::scatter_mul, "index_mul", x, indices, values);
}
Tensor index_min(Operand x, Operand indices, Operand values) {
  return ix::written(detail::Op::scatter_min, "index_min", x, indices, values);
}
Tensor index_max(Operand x, Operand indices, Operand values) {
  return ix::written(detail::Op::scatter_max, "index_max", x, indices, values);
}

Tensor gather_nd(Operand x, Operand indices) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("gather_nd", x.tensor, w);
  detail::need("gather_nd", indices.tensor, w);
  const Tensor index = ix::wrapped_vectors("gather_nd", indices.tensor, x.tensor.shape(), w);
  const int k = static_cast<int>(index.dim(-1)), leading = index.rank() - 1;
  detail::GatherParams p;
  p.slice_sizes = x.tensor.shape();
  std::int64_t addressed = 1;
  for (int i = 0; i < k; ++i) {
    p.collapsed_slice_dims.push_back(i);
    p.start_index_map.push_back(i);
    p.slice_sizes[i] = 1;
    addressed *= x.tensor.dim(i);
  }
  if (addressed == 0 && detail::extent_along(index.shape(), Axes::first(leading)) != 0)
    detail::refuse(ErrorKind::shape, "gather_nd", "nothing to read from an axis of size 0",
                   x.tensor, indices.tensor, w);
  for (int i = k; i < x.tensor.rank(); ++i) p.offset_dims.push_back(leading + i - k);
  return detail::emit(detail::Op::gather, detail::make_params(std::move(p)), {x.tensor, index}, w);
}
std::vector<Tensor> unravel_index(Operand indices, const Shape& shape) {
  const CallSite w = indices.where;
  const detail::UserLine line(w);
  detail::need("unravel_index", indices.tensor, w);
  const std::int64_t n = shape.elements();
  detail::need_elements("unravel_index", indices.tensor, n, indices.tensor, w);
  const Tensor flat = clip(detail::wrapped_index("unravel_index", indices.tensor, n, w), 0, n - 1);
  std::vector<Tensor> along;
  std::int64_t stride = n;
  for (const std::int64_t extent : shape) {
    stride = extent == 0 ? 0 : stride / extent;
    along.push_back(stride == 0 ? flat : flat / stride % extent);
  }
  return along;
}
Tensor ravel_multi_index(TensorSpan indices, const Shape& shape, CallSite where) {
  const detail::UserLine line(where);
  if (indices.size() != shape.size())
    detail::refuse(ErrorKind::shape, "ravel_multi_index",
                   detail::formatted("{} indices for the {} axes of {}", indices.size(),
                                     shape.size(), shape.str()),
                   indices, where);
  const DType d = detail::count_dtype(shape.elements());
  Tensor flat = detail::full_tensor(detail::Scalar(0).converted(d), detail::Aval(d, Shape{}));
  for (std::size_t k = 0; k < shape.size(); ++k) {
    detail::need("ravel_multi_index", indices[k], where);
    detail::need_elements("ravel_multi_index", indices[k], shape[k], indices[k], where);
    const Tensor at = clip(detail::wrapped_index("ravel_multi_index", indices[k], shape[k], where),
                           0, shape[k] - 1);
    flat = flat * shape[k] + detail::cast(at, d, where);
  }
  return flat;
}
Tensor scatter_nd(Operand indices, Operand updates, const Shape& shape) {
  const CallSite w = indices.where;
  const detail::UserLine line(w);
  detail::need("scatter_nd", indices.tensor, w);
  detail::need("scatter_nd", updates.tensor, w);
  updates.tensor = detail::to_number(updates.tensor, w);
  const Tensor index = ix::wrapped_vectors("scatter_nd", indices.tensor, shape, w);
  const int k = static_cast<int>(index.dim(-1)), leading = index.rank() - 1;
  Shape wanted;
  for (int i = 0; i < leading; ++i) wanted.push_back(index.dim(i));
  for (int i = k; i < shape.rank(); ++i) wanted.push_back(detail::extent(shape, i));
  if (updates.tensor.shape() != wanted)
    detail::refuse(ErrorKind::shape, "scatter_nd",
                   detail::formatted("the updates must have shape {}", wanted.str()),
                   indices.tensor, updates.tensor, w);
  detail::ScatterParams p;
  for (int i = 0; i < k; ++i) {
    p.inserted_window_dims.push_back(i);
    p.scatter_dims_to_operand_dims.push_back(i);
  }
  for (int i = leading; i < wanted.rank(); ++i) p.update_window_dims.push_back(i);
  const Tensor values = detail::cast(updates.tensor, updates.tensor.dtype(), w);
  return detail::emit(
      detail::Op::scatter_add, detail::make_params(std::move(p)),
      {detail::filled("scatter_nd", detail::Scalar(0), values.dtype(), shape, w), index, values},
      w);
}

}  // namespace vt
