// The functions that rearrange, join, cut and repeat: reshape … tile, concatenate, pad,
// roll, meshgrid.
#include <algorithm>
#include <string>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "support/operands.hpp"
#include "support/ordering.hpp"

namespace vt::detail::shapes {

/// The shape with a −1 filled in. Throws if the elements do not fill it.
inline Shape resolved(const Tensor& x, const Shape& wanted, CallSite where) {
  Shape shape = wanted;
  int open = -1;
  std::int64_t others = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    const std::int64_t d = extent(shape, i);
    if (d == -1) {
      if (open >= 0)
        refuse(ErrorKind::shape, "reshape",
               formatted("only one extent of {} may be −1", wanted.str()), x, where);
      open = i;
    } else if (d < 0 || __builtin_mul_overflow(others, d, &others)) {
      refuse(ErrorKind::shape, "reshape", formatted("shape {} has a bad extent", wanted.str()), x,
             where);
    }
  }
  const std::int64_t n = x.size();
  if (open >= 0 && others > 0 && n % others == 0) shape[open] = n / others;
  if (shape.elements() != n || (open >= 0 && others == 0))
    refuse(ErrorKind::shape, "reshape",
           formatted("{} elements do not fill shape {}", n, wanted.str()), x, where);
  return shape;
}

/// Brings the parts of a concatenation to one dtype.
inline std::vector<Tensor> met(std::string_view name, TensorSpan parts, CallSite where) {
  if (parts.empty())
    refuse(ErrorKind::shape, name, "needs at least one Tensor", std::span<const Tensor>(), where);
  for (const Tensor& t : parts) need(name, t, where);
  const Common c = common_dtype(parts);
  check_literals(name, parts, c.dtype, Literal::value, where);
  std::vector<Tensor> result;
  result.reserve(parts.size());
  for (const Tensor& t : parts) result.push_back(cast(t, c.dtype, c.weak, where));
  return result;
}

inline Tensor joined(std::string_view name, TensorSpan parts, int axis, CallSite where) {
  if (parts.size() == 1 && !in_batch()) return parts[0];
  const Shape& first = aval_of(parts[0]).shape;
  for (const Tensor& t : parts) {
    const Shape& s = aval_of(t).shape;
    bool fits = s.rank() == first.rank();
    for (int i = 0; fits && i < s.rank(); ++i) fits = i == axis || extent(s, i) == extent(first, i);
    if (!fits)
      refuse(ErrorKind::shape, name, formatted("shapes differ outside axis {}", axis),
             std::span<const Tensor>(parts), where);
  }
  return emit(Op::concatenate, make_params(AxisParams{axis}), std::span<const Tensor>(parts),
              where);
}

/// Swaps the two halves of an axis: element i goes to i + shift, around the end.
inline Tensor rolled(const Tensor& x, std::int64_t shift, int axis, CallSite where) {
  const std::int64_t n = extent(aval_of(x).shape, axis);
  if (n == 0) return x;
  const std::int64_t s = ((shift % n) + n) % n;
  if (s == 0) return x;
  return joined("roll", {sliced(x, axis, n - s, n, 1, where), sliced(x, axis, 0, n - s, 1, where)},
                axis, where);
}

/// The element of an axis of `n` that stands at `place` of the padded one, counted from the first
/// of x.
inline std::int64_t mirrored(std::int64_t place, std::int64_t n, PadMode mode) {
  if (mode == PadMode::edge || n == 1) return std::clamp<std::int64_t>(place, 0, n - 1);
  const std::int64_t period = mode == PadMode::wrap        ? n
                              : mode == PadMode::symmetric ? 2 * n
                                                           : 2 * n - 2;
  const std::int64_t m = ((place % period) + period) % period;
  return m < n ? m : (mode == PadMode::symmetric ? period - 1 : period) - m;
}
/// The same of many places.
inline Tensor mirrored(const Tensor& places, std::int64_t n, PadMode mode) {
  if (mode == PadMode::edge || n == 1) return clip(places, 0, n - 1);
  const std::int64_t period = mode == PadMode::wrap        ? n
                              : mode == PadMode::symmetric ? 2 * n
                                                           : 2 * n - 2;
  const Tensor m = mod(places, period);
  return vt::where(m < n, m, (mode == PadMode::symmetric ? period - 1 : period) - m);
}

/// An axis with `low` and `high` more elements, made of its own: slices of it, forwards and
/// backwards, beside each other.
inline Tensor filled_edges(const Tensor& x, int axis, std::int64_t low, std::int64_t high,
                           PadMode mode, CallSite where) {
  const std::int64_t n = extent(aval_of(x).shape, axis);
  if (low + high > 4 * n) {  // many short runs
    return take(x, mirrored(counted(i64, Shape{low + n + high}, 0, where) - low, n, mode), axis);
  }
  std::vector<Tensor> parts;
  for (std::int64_t place = -low; place < n + high;) {
    const std::int64_t first = mirrored(place, n, mode);
    // how many elements follow each other in one direction, or are the same
    std::int64_t step = 0, count = 1;
    for (; place + count < n + high; ++count) {
      const std::int64_t next =
          mirrored(place + count, n, mode) - mirrored(place + count - 1, n, mode);
      if (count > 1 && next != step) break;
      if (next < -1 || next > 1) break;
      step = next;
    }
    Tensor part = step < 0 ? sliced(x, axis, first - count + 1, first + 1, 1, where)
                           : sliced(x, axis, first, first + (step > 0 ? count : 1), 1, where);
    if (step < 0) part = emit(Op::rev, make_params(AxesParams{Axes{axis}}), {part}, where);
    if (step == 0 && count > 1) {
      Shape shape = aval_of(x).shape;
      shape[axis] = count;
      part = broadcast_to(part, shape);
    }
    parts.push_back(part);
    place += count;
  }
  return parts.size() == 1 ? parts[0] : joined("pad", parts, axis, where);
}

inline Tensor flattened(const Tensor& x, CallSite where) {
  return reshaped(x, Shape{x.size()}, where);
}

}  // namespace vt::detail::shapes

namespace vt {

namespace sh = detail::shapes;

Tensor reshape(Operand x, const Shape& shape) {
  detail::need("reshape", x.tensor, x.where);
  return detail::reshaped(x.tensor, sh::resolved(x.tensor, shape, x.where), x.where);
}
Tensor ravel(Operand x) {
  detail::need("ravel", x.tensor, x.where);
  return sh::flattened(x.tensor, x.where);
}

Tensor transpose(Operand x, const Axes& permutation) {
  detail::need("transpose", x.tensor, x.where);
  const int rank = x.tensor.rank();
  Axes p;
  if (permutation.empty()) {
    for (int i = rank; i-- > 0;) p.push_back(i);
  } else {
    p = detail::normal_axes("transpose", permutation, rank, x.tensor, x.where);
    if (static_cast<int>(p.size()) != rank)
      detail::refuse(
          ErrorKind::shape, "transpose",
          detail::formatted("permutation {} does not have one entry per axis", permutation.str()),
          x.tensor, x.where);
  }
  return detail::permuted(x.tensor, p, x.where);
}
Tensor swapaxes(Operand x, Param<int> a, Param<int> b) {
  detail::need("swapaxes", x.tensor, x.where);
  Axes p = Axes::first(x.tensor.rank());
  const int i = detail::normal_axis("swapaxes", a, x.tensor, x.where),
            j = detail::normal_axis("swapaxes", b, x.tensor, x.where);
  std::swap(p[i], p[j]);
  return detail::permuted(x.tensor, p, x.where);
}
Tensor moveaxis(Operand x, const Axes& from, const Axes& to) {
  detail::need("moveaxis", x.tensor, x.where);
  const int rank = x.tensor.rank();
  const Axes f = detail::normal_axes("moveaxis", from, rank, x.tensor, x.where),
             t = detail::normal_axes("moveaxis", to, rank, x.tensor, x.where);
  if (f.size() != t.size())
    detail::refuse(ErrorKind::shape, "moveaxis",
                   detail::formatted("{} and {} differ in length", from.str(), to.str()), x.tensor,
                   x.where);
  Axes p;
  p.resize(rank, -1);
  for (std::size_t i = 0; i < f.size(); ++i) p[t[i]] = f[i];
  const Axes rest = detail::other_axes(f, rank);
  std::size_t next = 0;
  for (int& axis : p)
    if (axis < 0) axis = rest[next++];
  return detail::permuted(x.tensor, p, x.where);
}
Tensor matrix_transpose(Operand x) {
  detail::need("matrix_transpose", x.tensor, x.where);
  if (x.tensor.rank() < 2)
    detail::refuse(ErrorKind::shape, "matrix_transpose", "needs at least two axes", x.tensor,
                   x.where);
  return swapaxes(std::move(x), -1, -2);
}

Tensor broadcast_to(Operand x, const Shape& shape) {
  detail::need("broadcast_to", x.tensor, x.where);
  if (!detail::broadcasts_to(x.tensor.shape(), shape))
    detail::refuse(ErrorKind::shape, "broadcast_to",
                   detail::formatted("does not broadcast to {}", shape.str()), x.tensor, x.where);
  detail::need_size("broadcast_to", x.tensor.dtype(), shape, {&x.tensor, 1}, x.where);
  return detail::broadcast(x.tensor, shape, x.where);
}
Tensor broadcast_in_dim(Operand x, const Shape& shape, const Axes& axes) {
  detail::need("broadcast_in_dim", x.tensor, x.where);
  const Axes to = detail::normal_axes("broadcast_in_dim", axes, shape.rank(), x.tensor, x.where);
  if (to.size() != x.tensor.shape().size())
    detail::refuse(
        ErrorKind::shape, "broadcast_in_dim",
        detail::formatted("axes {} do not name one result axis per operand axis", axes.str()),
        x.tensor, x.where);
  // The primitive keeps the order of the axes; another order is a transpose first.
  Axes order = Axes::first(x.tensor.rank()), sorted = to;
  detail::insertion_sort(order, [&](int i, int j) { return to[i] < to[j]; });
  detail::insertion_sort(sorted);
  return detail::emit(detail::Op::broadcast_in_dim,
                      detail::make_params(detail::BroadcastParams{shape, sorted}),
                      {detail::permuted(x.tensor, order, x.where)}, x.where);
}

Tensor expand_dims(Operand x, const Axes& axes) {
  detail::need("expand_dims", x.tensor, x.where);
  const int rank = x.tensor.rank() + static_cast<int>(axes.size());
  const Axes added = detail::normal_axes("expand_dims", axes, rank, x.tensor, x.where);
  const Axes old = detail::other_axes(added, rank);
  Shape shape = Shape::filled(rank, 1);
  for (std::size_t i = 0; i < old.size(); ++i) shape[old[i]] = x.tensor.shape()[i];
  return detail::broadcast_along(x.tensor, shape, old, x.where);
}
Tensor squeeze(Operand x, const ReduceAxes& axes) {
  detail::need("squeeze", x.tensor, x.where);
  const Shape& from = x.tensor.shape();
  Axes gone;
  if (axes.all()) {
    for (int i = 0; i < from.rank(); ++i)
      if (detail::extent(from, i) == 1) gone.push_back(i);
  } else {
    gone = detail::normal_axes("squeeze", axes.axes(), from.rank(), x.tensor, x.where);
    for (int i : gone)
      if (detail::extent(from, i) != 1)
        detail::refuse(ErrorKind::shape, "squeeze",
                       detail::formatted("axis {} has size {}, not 1", i, detail::extent(from, i)),
                       x.tensor, x.where);
  }
  Shape shape;
  for (int i : detail::other_axes(gone, from.rank())) shape.push_back(detail::extent(from, i));
  return detail::reshaped(x.tensor, shape, x.where);
}

Tensor concatenate(TensorSpan parts, Param<int> axis, CallSite where) {
  const std::vector<Tensor> met = sh::met("concatenate", parts, where);
  return sh::joined("concatenate", met, detail::normal_axis("concatenate", axis, met[0], where),
                    where);
}
Tensor stack(TensorSpan parts, Param<int> axis, CallSite where) {
  const detail::UserLine line(where);
  std::vector<Tensor> met = sh::met("stack", parts, where);
  const int at = detail::normal_axis("stack", axis, met[0].rank() + 1, met[0], where);
  for (const Tensor& t : met)
    if (t.shape() != met[0].shape())
      detail::refuse(ErrorKind::shape, "stack", "shapes differ", std::span<const Tensor>(parts),
                     where);
  Shape whole = met[0].shape();
  whole.insert(whole.begin() + at, static_cast<std::int64_t>(met.size()));
  detail::need_size("stack", met[0].dtype(), whole, met, where);
  for (Tensor& t : met) t = expand_dims(t, at);
  return sh::joined("stack", met, at, where);
}
void detail::unpack_to(std::span<Tensor> parts, Operand x, int axis) {
  need("unpack", x.tensor, x.where);
  const int at = normal_axis("unpack", axis, x.tensor, x.where);
  if (x.tensor.dim(at) != static_cast<std::int64_t>(parts.size()))
    refuse(ErrorKind::shape, "unpack",
           formatted("axis {} has {} slices, not {}", at, x.tensor.dim(at), parts.size()), x.tensor,
           x.where);
  std::vector<Tensor> slices = unstack(x, at);
  std::move(slices.begin(), slices.end(), parts.begin());
}

std::vector<Tensor> unstack(Operand x, Param<int> axis) {
  detail::need("unstack", x.tensor, x.where);
  const int at = detail::normal_axis("unstack", axis, x.tensor, x.where);
  Shape shape = x.tensor.shape();
  shape.erase(shape.begin() + at);
  std::vector<Tensor> parts;
  for (std::int64_t i = 0; i < x.tensor.dim(at); ++i)
    parts.push_back(
        detail::reshaped(detail::sliced(x.tensor, at, i, i + 1, 1, x.where), shape, x.where));
  return parts;
}

std::vector<Tensor> split(Operand x, Param<int> sections, Param<int> axis) {
  detail::need("split", x.tensor, x.where);
  const int along = detail::normal_axis("split", axis, x.tensor, x.where);
  const std::int64_t n = x.tensor.dim(along);
  if (sections < 1 || n % sections != 0)
    detail::refuse(ErrorKind::shape, "split",
                   detail::formatted("axis {} of size {} does not divide into {} equal parts",
                                     along, n, sections),
                   x.tensor, x.where);
  std::vector<Tensor> parts;
  for (int i = 0; i < sections; ++i)
    parts.push_back(
        detail::sliced(x.tensor, along, i * (n / sections), (i + 1) * (n / sections), 1, x.where));
  return parts;
}
std::vector<Tensor> split(Operand x, const std::vector<std::int64_t>& at, Param<int> axis) {
  detail::need("split", x.tensor, x.where);
  const int along = detail::normal_axis("split", axis, x.tensor, x.where);
  const std::int64_t n = x.tensor.dim(along);
  std::vector<Tensor> parts;
  std::int64_t start = 0;
  // As slices with the cuts for ends: negative ones count from the end, those beyond it leave empty
  // parts.
  auto cut = [&](std::int64_t i) { return std::clamp<std::int64_t>(i < 0 ? i + n : i, 0, n); };
  for (std::int64_t i : at) {
    const std::int64_t stop = cut(i);
    parts.push_back(detail::sliced(x.tensor, along, std::min(start, stop), stop, 1, x.where));
    start = stop;
  }
  parts.push_back(detail::sliced(x.tensor, along, start, n, 1, x.where));
  return parts;
}

Tensor pad(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& edges,
           Operand value) {
  detail::need("pad", x.tensor, x.where);
  const std::size_t rank = x.tensor.rank();
  if (edges.size() != rank && edges.size() != 1)
    detail::refuse(ErrorKind::shape, "pad",
                   detail::formatted("{} pairs of edges for rank {}", edges.size(), rank), x.tensor,
                   x.where);
  Shape low, high;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto& [before, after] = edges[edges.size() == 1 ? 0 : i];
    low.push_back(before);
    high.push_back(after);
  }
  return pad(std::move(x), std::move(value), low, high, Shape::filled(rank, 0));
}
Tensor pad(Operand x, Operand value, const Shape& low, const Shape& high, const Shape& interior) {
  detail::need("pad", x.tensor, x.where);
  detail::need("pad", value.tensor, x.where);
  const detail::Aval &a = detail::aval_of(x.tensor), &v = detail::aval_of(value.tensor);
  if (detail::category(v.dtype) > detail::category(a.dtype))
    detail::refuse(ErrorKind::dtype, "pad",
                   detail::formatted("{} does not hold the padding value", name_of(a.dtype)),
                   x.tensor, value.tensor, x.where);
  detail::check_literals("pad", {&value.tensor, 1}, a.dtype, detail::Literal::value, x.where);
  return detail::emit(detail::Op::pad, detail::make_params(detail::PadParams{low, high, interior}),
                      {x.tensor, detail::cast(value.tensor, a.dtype, a.weak, x.where)}, x.where);
}

Tensor pad(Operand x, const std::vector<std::pair<std::int64_t, std::int64_t>>& edges,
           PadMode mode) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("pad", x.tensor, w);
  const std::size_t rank = x.tensor.rank();
  if (edges.size() != rank && edges.size() != 1)
    detail::refuse(ErrorKind::shape, "pad",
                   detail::formatted("{} pairs of edges for rank {}", edges.size(), rank), x.tensor,
                   w);
  Tensor t = x.tensor;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto& [low, high] = edges[edges.size() == 1 ? 0 : i];
    const int axis = static_cast<int>(i);
    const std::int64_t n = t.dim(axis);
    if (low < 0 || high < 0)
      detail::refuse(ErrorKind::value, "pad", "what crops has no edge to be filled", x.tensor, w);
    if (low == 0 && high == 0) continue;
    if (n == 0)
      detail::refuse(ErrorKind::shape, "pad",
                     detail::formatted("axis {} has no elements to fill its edges with", axis),
                     x.tensor, w);
    Shape shape = t.shape();
    shape[i] = detail::plus(n, detail::plus(low, high));
    detail::need_size("pad", t.dtype(), shape, {&x.tensor, 1}, w);
    t = sh::filled_edges(t, axis, low, high, mode, w);
  }
  return t;
}

Tensor rev(Operand x, const Axes& axes) {
  detail::need("rev", x.tensor, x.where);
  Axes over = detail::normal_axes("rev", axes, x.tensor.rank(), x.tensor, x.where);
  if (over.empty()) return x.tensor;
  detail::insertion_sort(over);
  return detail::emit(detail::Op::rev, detail::make_params(detail::AxesParams{over}), {x.tensor},
                      x.where);
}
Tensor flip(Operand x, const ReduceAxes& axes) {
  detail::need("flip", x.tensor, x.where);
  const Axes over = detail::reduction_axes("flip", axes, x.tensor, x.where);
  return rev(std::move(x), over);
}
Tensor roll(Operand x, Param<std::int64_t> shift, std::optional<Param<int>> axis) {
  detail::need("roll", x.tensor, x.where);
  if (axis)
    return sh::rolled(x.tensor, shift, detail::normal_axis("roll", *axis, x.tensor, x.where),
                      x.where);
  return detail::reshaped(sh::rolled(sh::flattened(x.tensor, x.where), shift, 0, x.where),
                          x.tensor.shape(), x.where);
}
Tensor detail::rolled_by(Operand x, const Tensor& shift, std::optional<int> axis) {
  const CallSite w = x.where;
  const UserLine line(w);
  need("roll", x.tensor, w);
  need("roll", shift, w);
  if (!is_int(shift.dtype()) || shift.rank() != 0)
    refuse(ErrorKind::value, "roll", "the shift must be an integer or an integer scalar Tensor",
           x.tensor, shift, w);
  const Tensor t = axis ? x.tensor : shapes::flattened(x.tensor, w);
  const int along = axis ? normal_axis("roll", *axis, x.tensor, w) : 0;
  const std::int64_t n = extent(t.shape(), along);
  if (n == 0) return x.tensor;
  // A window of x twice in a row.
  const Tensor by = cast(mod(cast(shift, i64, w), n), count_dtype(2 * n), w);
  const Tensor rolled =
      dynamic_slice_in_dim(shapes::joined("roll", {t, t}, along, w), n - by, n, along);
  return axis ? rolled : reshaped(rolled, x.tensor.shape(), w);
}
Tensor roll(Operand x, const std::vector<std::int64_t>& shifts, const Axes& axes) {
  detail::need("roll", x.tensor, x.where);
  if (shifts.size() != axes.size())
    detail::refuse(ErrorKind::shape, "roll",
                   detail::formatted("{} shifts for {} axes", shifts.size(), axes.size()), x.tensor,
                   x.where);
  Tensor t = x.tensor;
  for (std::size_t i = 0; i < axes.size(); ++i)
    t = sh::rolled(t, shifts[i], detail::normal_axis("roll", axes[i], x.tensor, x.where), x.where);
  return t;
}

Tensor fftshift(Operand x, const ReduceAxes& axes) {
  detail::need("fftshift", x.tensor, x.where);
  Tensor t = x.tensor;
  for (int axis : detail::reduction_axes("fftshift", axes, x.tensor, x.where))
    t = sh::rolled(t, t.dim(axis) / 2, axis, x.where);
  return t;
}
Tensor ifftshift(Operand x, const ReduceAxes& axes) {
  detail::need("ifftshift", x.tensor, x.where);
  Tensor t = x.tensor;
  for (int axis : detail::reduction_axes("ifftshift", axes, x.tensor, x.where))
    t = sh::rolled(t, -(t.dim(axis) / 2), axis, x.where);
  return t;
}

Tensor tile(Operand x, const Shape& repetitions) {
  detail::need("tile", x.tensor, x.where);
  const Shape& from = x.tensor.shape();
  const int rank = std::max(from.rank(), repetitions.rank());
  Shape apart, whole;  // each axis as (copies, elements), then merged
  Axes axes;
  for (int i = 0; i < rank; ++i) {
    const int r = i - (rank - repetitions.rank()), d = i - (rank - from.rank());
    const std::int64_t copies = r < 0 ? 1 : detail::extent(repetitions, r),
                       n = d < 0 ? 1 : detail::extent(from, d);
    if (copies < 0)
      detail::refuse(ErrorKind::value, "tile",
                     detail::formatted("negative repetitions {}", repetitions.str()), x.tensor,
                     x.where);
    if (copies != 1) apart.push_back(copies);
    if (d >= 0) {
      axes.push_back(apart.rank());
      apart.push_back(n);
    }
    whole.push_back(detail::times(copies, n));
  }
  detail::need_size("tile", x.tensor.dtype(), whole, {&x.tensor, 1}, x.where);
  if (x.tensor.size() == 0)
    return detail::filled("tile", detail::Scalar(0), x.tensor.dtype(), whole,
                          x.where);  // however many copies
  return detail::reshaped(detail::broadcast_along(x.tensor, apart, axes, x.where), whole, x.where);
}
Tensor detail::repeated_by(Operand x, const Tensor& counts, std::optional<int> axis,
                           std::optional<std::int64_t> size) {
  const CallSite w = x.where;
  const UserLine line(w);
  need("repeat", x.tensor, w);
  need("repeat", counts, w);
  const Tensor t = axis ? x.tensor : shapes::flattened(x.tensor, w);
  const int along = axis ? normal_axis("repeat", *axis, x.tensor, w) : 0;
  const std::int64_t n = extent(t.shape(), along);
  if (!is_int(counts.dtype()) || counts.rank() > 1 || (counts.rank() == 1 && counts.dim(0) != n))
    refuse(ErrorKind::value, "repeat",
           formatted("the counts must be integers, one for each of {} elements or one for all", n),
           x.tensor, counts, w);
  const Tensor ends = cumsum(broadcast(maximum(cast(counts, i64, w), 0), Shape{n}, w));
  const auto summed = [&] {
    const std::string along_which = axis ? std::to_string(*axis) : "std::nullopt";
    return ordering::known_count("repeat", formatted("vt::repeat(x, counts, {}, 8)", along_which),
                                 n == 0 ? Tensor(0) : ends[n - 1], w);
  };
  const std::int64_t total = size ? *size : summed();
  if (total < 0)
    refuse(ErrorKind::value, "repeat", formatted("cannot give {} elements", total), x.tensor, w);
  if (n == 0 && total > 0) refuse(ErrorKind::shape, "repeat", "no elements to repeat", x.tensor, w);
  const Tensor places = counted(i64, Shape{total}, 0, w);
  return take(t, minimum(searchsorted(ends, places, true), n - 1), along);
}
Tensor repeat(Operand x, Param<std::int64_t> count, std::optional<Param<int>> axis) {
  detail::need("repeat", x.tensor, x.where);
  if (count < 0)
    detail::refuse(ErrorKind::value, "repeat", detail::formatted("negative count {}", count),
                   x.tensor, x.where);
  const Tensor t = axis ? x.tensor : sh::flattened(x.tensor, x.where);
  const int along = axis ? detail::normal_axis("repeat", *axis, x.tensor, x.where) : 0;
  Shape apart, whole;
  Axes axes;
  for (int i = 0; i < t.rank(); ++i) {
    axes.push_back(apart.rank());
    apart.push_back(t.dim(i));
    whole.push_back(detail::times(t.dim(i), i == along ? std::int64_t{count} : 1));
    if (i == along) apart.push_back(count);
  }
  detail::need_size("repeat", x.tensor.dtype(), whole, {&x.tensor, 1}, x.where);
  if (x.tensor.size() == 0)
    return detail::filled("repeat", detail::Scalar(0), x.tensor.dtype(), whole,
                          x.where);  // however many copies
  return detail::reshaped(detail::broadcast_along(t, apart, axes, x.where), whole, x.where);
}

std::vector<Tensor> meshgrid(TensorSpan axes, bool matrix_indexing, CallSite where) {
  const auto n = static_cast<int>(axes.size());
  Shape shape;
  for (const Tensor& t : axes) {
    detail::need("meshgrid", t, where);
    if (t.rank() > 1)
      detail::refuse(ErrorKind::shape, "meshgrid", "needs vectors", std::span<const Tensor>(axes),
                     where);
    shape.push_back(t.size());
  }
  // NumPy's default counts x along columns: the first two axes trade places.
  auto place = [&](int i) { return !matrix_indexing && n >= 2 && i < 2 ? 1 - i : i; };
  if (n >= 2 && !matrix_indexing) std::swap(shape[0], shape[1]);
  if (n > 0) detail::need_size("meshgrid", axes[0].dtype(), shape, axes, where);
  std::vector<Tensor> grids;
  for (int i = 0; i < n; ++i)
    grids.push_back(
        detail::broadcast_along(sh::flattened(axes[i], where), shape, Axes(place(i)), where));
  return grids;
}

Tensor space_to_depth(Operand x, Param<int> block) {
  detail::need("space_to_depth", x.tensor, x.where);
  const Shape& s = x.tensor.shape();
  if (s.rank() != 4 || block < 1 || s[1] % block != 0 || s[2] % block != 0)
    detail::refuse(
        ErrorKind::shape, "space_to_depth",
        detail::formatted("needs [N,H,W,C] with H and W multiples of the block {}", block),
        x.tensor, x.where);
  const Tensor cut = detail::reshaped(
      x.tensor, Shape{s[0], s[1] / block, block, s[2] / block, block, s[3]}, x.where);
  return detail::reshaped(
      detail::permuted(cut, {0, 1, 3, 2, 4, 5}, x.where),
      Shape{s[0], s[1] / block, s[2] / block, detail::times(detail::times(s[3], block), block)},
      x.where);
}
Tensor depth_to_space(Operand x, Param<int> block) {
  detail::need("depth_to_space", x.tensor, x.where);
  const Shape& s = x.tensor.shape();
  const std::int64_t cells = std::int64_t{block} * block;
  if (s.rank() != 4 || block < 1 || s[3] % cells != 0)
    detail::refuse(
        ErrorKind::shape, "depth_to_space",
        detail::formatted("needs [N,H,W,C] with C a multiple of the block {} squared", block),
        x.tensor, x.where);
  const std::int64_t c = s[3] / cells;
  detail::need_size("depth_to_space", x.tensor.dtype(),
                    {s[0], detail::times(s[1], block), detail::times(s[2], block), c},
                    {&x.tensor, 1}, x.where);
  const Tensor cut = detail::reshaped(x.tensor, Shape{s[0], s[1], s[2], block, block, c}, x.where);
  return detail::reshaped(detail::permuted(cut, {0, 1, 3, 2, 4, 5}, x.where),
                          Shape{s[0], s[1] * block, s[2] * block, c}, x.where);
}

namespace detail::shapes {

/// The axes of x cut into blocks as [N, s/b, b, …, rest…], and the same in the order that batches
/// them: [b…, N, s/b…, rest…].
struct Blocks {
  Shape apart, batched;
  Axes order;
};
/// `s`: of the images, blocks laid out.
inline Blocks blocks_of(const Shape& s, const Shape& block, std::int64_t images) {
  Blocks b;
  const int k = block.rank();
  b.apart.push_back(images);
  Axes places;
  for (int i = 0; i < k; ++i) {
    const std::size_t at = i;
    b.apart.push_back(s[at + 1] / block[at]);
    b.apart.push_back(block[at]);
    b.order.push_back(2 * i + 2);
    places.push_back(2 * i + 1);
  }
  b.order.push_back(0);
  b.order.append(places.begin(), places.end());
  for (int i = k + 1; i < s.rank(); ++i) {
    b.order.push_back(b.apart.rank());
    b.apart.push_back(s[i]);
  }
  for (int axis : b.order) b.batched.push_back(b.apart[axis]);
  return b;
}
inline void check_blocks(std::string_view name, const Tensor& x, const Shape& block,
                         std::size_t edges, CallSite where) {
  bool fits = edges == block.size() && x.rank() > block.rank();
  for (std::int64_t b : block) fits = fits && b >= 1;
  if (!fits)
    refuse(ErrorKind::shape, name,
           formatted("blocks {} and {} pairs of edges do not fit", block.str(), edges), x, where);
}

}  // namespace detail::shapes

Tensor space_to_batch(Operand x, const Shape& block,
                      const std::vector<std::pair<std::int64_t, std::int64_t>>& padding) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("space_to_batch", x.tensor, w);
  detail::shapes::check_blocks("space_to_batch", x.tensor, block, padding.size(), w);
  std::vector<std::pair<std::int64_t, std::int64_t>> edges{{0, 0}};
  edges.insert(edges.end(), padding.begin(), padding.end());
  edges.resize(x.tensor.rank());
  const Tensor t = pad(x, edges);
  std::int64_t cells = 1;
  for (std::size_t i = 0; i < block.size(); ++i) {
    if (t.shape()[i + 1] % block[i] != 0)
      detail::refuse(ErrorKind::shape, "space_to_batch",
                     detail::formatted("padded it is {}, of which {} are no blocks",
                                       t.shape().str(), block.str()),
                     x.tensor, w);
    cells = detail::times(cells, block[i]);
  }
  const detail::shapes::Blocks b = detail::shapes::blocks_of(t.shape(), block, t.dim(0));
  Shape shape = t.shape();
  shape[0] = detail::times(shape[0], cells);
  for (std::size_t i = 0; i < block.size(); ++i) shape[i + 1] /= block[i];
  return detail::reshaped(detail::permuted(detail::reshaped(t, b.apart, w), b.order, w), shape, w);
}
Tensor batch_to_space(Operand x, const Shape& block,
                      const std::vector<std::pair<std::int64_t, std::int64_t>>& crops) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("batch_to_space", x.tensor, w);
  detail::shapes::check_blocks("batch_to_space", x.tensor, block, crops.size(), w);
  std::int64_t cells = 1;
  Shape shape = x.tensor.shape();
  for (std::size_t i = 0; i < block.size(); ++i) {
    cells = detail::times(cells, block[i]);
    shape[i + 1] = detail::times(shape[i + 1], block[i]);
  }
  if (shape[0] % cells != 0)
    detail::refuse(ErrorKind::shape, "batch_to_space",
                   detail::formatted("there are no {} images for each block", cells), x.tensor, w);
  shape[0] /= cells;
  detail::need_size("batch_to_space", x.tensor.dtype(), shape, {&x.tensor, 1}, w);
  const detail::shapes::Blocks b = detail::shapes::blocks_of(shape, block, shape[0]);
  Axes back = b.order;
  for (std::size_t i = 0; i < b.order.size(); ++i) back[b.order[i]] = static_cast<int>(i);
  const Tensor t = detail::reshaped(
      detail::permuted(detail::reshaped(x.tensor, b.batched, w), back, w), shape, w);
  std::vector<std::pair<std::int64_t, std::int64_t>> edges(static_cast<std::size_t>(t.rank()));
  for (std::size_t i = 0; i < crops.size(); ++i) {
    if (crops[i].first < 0 || crops[i].second < 0 ||
        detail::plus(crops[i].first, crops[i].second) > shape[i + 1])
      detail::refuse(ErrorKind::value, "batch_to_space", "there is less than what is cropped", t,
                     w);
    edges[i + 1] = {-crops[i].first, -crops[i].second};
  }
  return pad(t, edges);
}

}  // namespace vt
