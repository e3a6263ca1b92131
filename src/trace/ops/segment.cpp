// Functions that group or look up by number: one_hot, segment reductions, bincount, histogram,
// bucketize, interp.
#include <cmath>
#include <limits>

#include <vt/detail/message.hpp>

#include "support/indexing.hpp"
#include "support/ordering.hpp"

namespace vt::detail::segments {

inline Tensor scalar_of(DType d, Scalar value) {
  return full_tensor(value.converted(d), Aval(d, Shape{}));
}

/// The least (or greatest) value of a dtype: the neutral element of max (of min).
inline Scalar extreme(DType d, bool least) {
  if (is_float(d))
    return Scalar(least ? -std::numeric_limits<double>::infinity()
                        : std::numeric_limits<double>::infinity())
        .converted(d);
  if (is_unsigned(d))
    return Scalar(least ? std::uint64_t{0} : ~std::uint64_t{0} >> (64 - 8 * size_of(d)))
        .converted(d);
  if (is_bool(d)) return Scalar(!least);
  const std::int64_t most = std::numeric_limits<std::int64_t>::max() >> (64 - 8 * size_of(d));
  return Scalar(least ? -most - 1 : most).converted(d);
}

/// Combines the rows of x that share an id into `segments` rows. An id that is none of them is
/// dropped, negative ones too.
inline Tensor combined(Op op, std::string_view name, const Tensor& x, const Tensor& ids,
                       std::int64_t segments, Scalar start, CallSite where) {
  if (segments < 0)
    refuse(ErrorKind::value, name, formatted("cannot make {} segments", segments), x, ids, where);
  need_order(name, op, x, where);
  const int leading = ids.rank();
  bool prefix = leading >= 1 && leading <= x.rank();
  for (int i = 0; prefix && i < leading; ++i) prefix = x.dim(i) == ids.dim(i);
  if (!prefix)
    refuse(ErrorKind::shape, name, "the ids must have the shape of the leading axes of the data", x,
           ids, where);
  const Tensor index = index_dtype(name, ids, segments, where);
  Shape shape{segments}, indices = index.shape();
  indices.push_back(1);
  ScatterParams p;
  for (int i = leading; i < x.rank(); ++i) {
    shape.push_back(x.dim(i));
    p.update_window_dims.push_back(i);
  }
  p.inserted_window_dims.push_back(0);
  p.scatter_dims_to_operand_dims.push_back(0);
  p.mode = IndexMode::fill;
  const Tensor data = cast(x, x.dtype(), where);
  return emit(op, make_params(std::move(p)),
              {filled(name, start, data.dtype(), shape, where),
               broadcast_along(index, indices, Axes::first(leading), where), data},
              where);
}

inline void need_both(std::string_view name, const Operand& x, const Operand& ids) {
  need(name, x.tensor, x.where);
  need(name, ids.tensor, x.where);
}

/// Does a stand before b in a sort? NaN is behind all numbers; complex numbers go by their real and
/// then by their imaginary parts.
inline Tensor comes_before(const Tensor& a, const Tensor& b) {
  if (!is_inexact(a.dtype())) return a < b;
  if (!is_complex(a.dtype()))
    return logical_or(a < b, logical_and(isnan(b), logical_not(isnan(a))));
  const Tensor x = real(a), y = real(b);
  const Tensor tie = logical_or(equal(x, y), logical_and(isnan(x), isnan(y)));
  return logical_or(comes_before(x, y), logical_and(tie, comes_before(imag(a), imag(b))));
}

/// How many of the sorted edges lie below each x; at or below it with `right`. Comparisons for few
/// edges, else bisection.
inline Tensor rank_among(const Tensor& sorted, const Tensor& values, bool right, CallSite where) {
  const DType common = common_dtype(aval_of(sorted), aval_of(values)).dtype;
  check_literals("searchsorted", {&values, 1}, common, Literal::value, where);
  const Tensor edges = cast(sorted, common, where), x = cast(values, common, where);
  const std::int64_t n = edges.dim(0);
  auto below = [&](const Tensor& e, const Tensor& t) {
    return right ? logical_not(comes_before(t, e)) : comes_before(e, t);
  };
  constexpr std::int64_t few = 64;
  if (n <= few) {
    Shape grid = x.shape();
    const int last = grid.rank();
    grid.push_back(n);
    const Tensor e = broadcast_along(edges, grid, Axes(last), where),
                 t = broadcast_along(x, grid, Axes::first(last), where);
    return sum(cast(below(e, t), i32, where), last);
  }
  // Each step halves the open interval [low, high); it takes as many steps for every element.
  const DType d = count_dtype(n);
  Tensor low = full_tensor(Scalar(0).converted(d), Aval(d, x.shape())),
         high = full_tensor(Scalar(n).converted(d), Aval(d, x.shape()));
  for (std::int64_t width = n; width > 0; width /= 2) {
    const Tensor open = low < high, middle = (low + high) / 2;
    const Tensor up = below(edges[middle], x);
    low = vt::where(open & up, middle + 1, low);
    high = vt::where(open & logical_not(up), middle, high);
  }
  return low;
}

}  // namespace vt::detail::segments

namespace vt {

namespace sg = detail::segments;

Tensor one_hot(Operand indices, Param<std::int64_t> classes, DType dtype, Param<int> axis) {
  const CallSite w = indices.where;
  const detail::UserLine line(w);
  detail::need("one_hot", indices.tensor, w);
  if (classes < 0)
    detail::refuse(ErrorKind::value, "one_hot",
                   detail::formatted("cannot make {} classes", classes), indices.tensor, w);
  const Tensor index = detail::index_dtype("one_hot", indices.tensor, classes, w);
  const int rank = index.rank() + 1,
            at = detail::normal_axis("one_hot", axis, rank, indices.tensor, w);
  Shape shape = index.shape();
  shape.insert(shape.begin() + at, classes);
  detail::need_size("one_hot", size_of(dtype) > size_of(index.dtype()) ? dtype : index.dtype(),
                    shape, {&indices.tensor, 1}, w);
  const Tensor broadcasted =
      detail::broadcast_along(index, shape, detail::other_axes(Axes(at), rank), w);
  return detail::cast(broadcasted == detail::counted(index.dtype(), shape, at, w), dtype, w);
}

Tensor segment_sum(Operand x, Operand segment_ids, Param<std::int64_t> segments) {
  const detail::UserLine line(x.where);
  sg::need_both("segment_sum", x, segment_ids);
  return sg::combined(detail::Op::scatter_add, "segment_sum", detail::to_number(x.tensor, x.where),
                      segment_ids.tensor, segments, detail::Scalar(0), x.where);
}
Tensor segment_prod(Operand x, Operand segment_ids, Param<std::int64_t> segments) {
  const detail::UserLine line(x.where);
  sg::need_both("segment_prod", x, segment_ids);
  return sg::combined(detail::Op::scatter_mul, "segment_prod", detail::to_number(x.tensor, x.where),
                      segment_ids.tensor, segments, detail::Scalar(1), x.where);
}
Tensor segment_max(Operand x, Operand segment_ids, Param<std::int64_t> segments) {
  const detail::UserLine line(x.where);
  sg::need_both("segment_max", x, segment_ids);
  return sg::combined(detail::Op::scatter_max, "segment_max", x.tensor, segment_ids.tensor,
                      segments, sg::extreme(x.tensor.dtype(), true), x.where);
}
Tensor segment_min(Operand x, Operand segment_ids, Param<std::int64_t> segments) {
  const detail::UserLine line(x.where);
  sg::need_both("segment_min", x, segment_ids);
  return sg::combined(detail::Op::scatter_min, "segment_min", x.tensor, segment_ids.tensor,
                      segments, sg::extreme(x.tensor.dtype(), false), x.where);
}
Tensor segment_mean(Operand x, Operand segment_ids, Param<std::int64_t> segments) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  sg::need_both("segment_mean", x, segment_ids);
  const Tensor given = detail::to_float(x.tensor, w), data = detail::widened(given, w);
  const Tensor total = sg::combined(detail::Op::scatter_add, "segment_mean", data,
                                    segment_ids.tensor, segments, detail::Scalar(0), w);
  const Tensor one = detail::full_tensor(detail::Scalar(1).converted(data.dtype()),
                                         detail::Aval(data.dtype(), segment_ids.tensor.shape()));
  const Tensor count = maximum(sg::combined(detail::Op::scatter_add, "segment_mean", one,
                                            segment_ids.tensor, segments, detail::Scalar(0), w),
                               1.0);
  return detail::cast(total / detail::broadcast_along(count, total.shape(), Axes(0), w),
                      given.dtype(), w);
}

Tensor bincount(Operand x, Param<std::int64_t> length) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("bincount", x.tensor, w);
  const Tensor ids = detail::reshaped(detail::to_number(x.tensor, w), Shape{x.tensor.size()}, w);
  const DType d = detail::count_dtype(ids.size());
  const Tensor one =
      detail::full_tensor(detail::Scalar(1).converted(d), detail::Aval(d, ids.shape()));
  return sg::combined(detail::Op::scatter_add, "bincount", one, ids, length, detail::Scalar(0), w);
}

Tensor histogram(Operand x, Param<std::int64_t> bins, Param<double> low, Param<double> high) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("histogram", x.tensor, w);
  if (bins < 1 || !(low < high) || !__builtin_isfinite(double{low}) ||
      !__builtin_isfinite(double{high}))
    detail::refuse(ErrorKind::value, "histogram",
                   detail::formatted("needs at least one bin and low < high, not {} from {} to {}",
                                     bins, low, high),
                   x.tensor, w);
  detail::need_size("histogram", i64, Shape{bins}, {&x.tensor, 1}, w);
  const DType d = is_float(x.tensor.dtype()) ? x.tensor.dtype() : f64;
  const Tensor t = detail::cast(x.tensor, d, w);
  const auto rounded = [d](double end) { return detail::Scalar(end).converted(d).to_double(); };
  Tensor inside = (t >= double{low}) & (t <= double{high});
  if (!__builtin_isfinite(rounded(low)) || !__builtin_isfinite(rounded(high)))
    inside = inside & isfinite(t);
  // A product finds the bin, or the one before, and the edge between them decides: the number that
  // linspace gives, so that what stands on it is in the upper one. A width beyond f64 is halved.
  const auto n = static_cast<double>(bins);
  const double part = __builtin_isfinite(high - low) ? 1.0 : 0.5, width = high * part - low * part,
               per = n / width;
  const Tensor wide = detail::cast(t, f64, w);
  Tensor offset = (part == 1 ? wide : wide * part) - low * part;
  if (width / n < 8 * part * detail::step_at(d, std::max(std::abs(low), std::abs(high)))) {
    // Bins as narrow as steps of the dtype: the last edge that rounds to t is half a step above it.
    offset = offset +
             (detail::cast(nextafter(t, std::numeric_limits<double>::infinity()), f64, w) - wide) *
                 (0.5 * part);
  }
  const Tensor place = std::isnormal(per) ? offset * per : offset / width * n;
  const Tensor before = clip(floor(place - 0.25), 0.0, n - 1);
  const Tensor edge = detail::cast(detail::spaced(before + 1.0, low, high, bins, false), d, w);
  const Tensor bin = where((t >= edge) & (before < n - 1), before + 1.0,
                           before);  // the last bin has its upper edge as well
  return bincount(detail::cast(where(inside, bin, -1.0), detail::count_dtype(bins), w), bins);
}

Tensor bucketize(Operand x, Operand boundaries, bool right) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  sg::need_both("bucketize", x, boundaries);
  if (boundaries.tensor.rank() != 1)
    detail::refuse(ErrorKind::shape, "bucketize", "the boundaries must be a vector", x.tensor,
                   boundaries.tensor, w);
  return sg::rank_among(boundaries.tensor, x.tensor, right, w);
}

Tensor searchsorted(Operand sorted, Operand values, bool right) {
  const CallSite w = sorted.where;
  const detail::UserLine line(w);
  sg::need_both("searchsorted", sorted, values);
  if (sorted.tensor.rank() != 1)
    detail::refuse(ErrorKind::shape, "searchsorted", "what is searched must be a vector",
                   sorted.tensor, values.tensor, w);
  return sg::rank_among(sorted.tensor, values.tensor, right, w);
}

std::vector<Tensor> nonzero(Operand x, std::optional<Param<std::int64_t>> wanted,
                            Param<std::int64_t> fill) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("nonzero", x.tensor, w);
  const std::int64_t size =
      wanted ? std::int64_t{*wanted}
             : detail::ordering::known_count("nonzero", "vt::nonzero(x, 8)", count_nonzero(x), w);
  if (size < 0)
    detail::refuse(ErrorKind::value, "nonzero", detail::formatted("cannot give {} indices", size),
                   x.tensor, w);
  detail::need_size("nonzero", i64, Shape{size}, {&x.tensor, 1}, w);
  const Shape& shape = x.tensor.shape();
  const std::int64_t n = shape.elements();
  const DType d = detail::count_dtype(std::max(n, size));
  const Tensor found = detail::reshaped(detail::to_bool(x.tensor, w), Shape{n}, w);
  // The k-th element that is not zero is written to place k; the others to a place that does not
  // exist.
  const Tensor place = where(found, cumsum(detail::cast(found, d, w)) - 1, size);
  const Tensor none = full({size}, -1, d);
  const Tensor flat = index_update(none, place, detail::counted(d, Shape{n}, 0, w));
  std::vector<Tensor> indices;
  std::int64_t stride = n;
  for (std::int64_t extent : shape) {
    stride = extent == 0 ? 0 : stride / extent;
    const Tensor index = stride == 0 ? none : flat / stride % extent;
    indices.push_back(
        detail::cast(where(flat < 0, std::int64_t{fill}, index), detail::count_dtype(extent), w));
  }
  return indices;
}

Tensor interp(Operand x, Operand xp, Operand fp) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  sg::need_both("interp", x, xp);
  detail::need("interp", fp.tensor, w);
  if (xp.tensor.rank() != 1 || xp.tensor.shape() != fp.tensor.shape() || xp.tensor.size() == 0)
    detail::refuse(ErrorKind::shape, "interp",
                   "the points must be two vectors of one size, at least 1", xp.tensor, fp.tensor,
                   w);
  const Tensor operands[3] = {x.tensor, xp.tensor, fp.tensor};
  detail::Common c = detail::common_dtype(operands);
  if (!is_inexact(c.dtype)) c.dtype = default_dtype();
  const Tensor t = detail::cast(x.tensor, c.dtype, w), at = detail::cast(xp.tensor, c.dtype, w),
               value = detail::cast(fp.tensor, c.dtype, w);
  const std::int64_t n = at.dim(0);
  if (n == 1) return detail::broadcast(detail::reshaped(value, Shape{}, w), t.shape(), w);
  const Tensor i = clip(sg::rank_among(at, t, true, w), 1, n - 1);
  const Tensor x0 = at[i - 1], x1 = at[i], y0 = value[i - 1], y1 = value[i];
  // Two points at one place are a jump: no slope between them.
  const Tensor run = x1 - x0, rise = y1 - y0, jump = run == 0;
  const Tensor plain = isfinite(rise) & isfinite(run);
  const Tensor slope = where(jump | !plain, 0.0, rise) / where(jump | !plain, 1.0, run);
  const Tensor between = where(plain, y0, 0.0) + slope * where(plain, t - x0, 0.0);
  // Beside an infinity or NaN a point keeps its value. Between two points NumPy goes from the one,
  // then from the other one; of such a line only the end that is a number has a derivative.
  const Tensor steep = where(jump, 0.0, rise) / where(jump, 1.0, run),
               from_left = y0 + steep * (t - x0), from_right = y1 + steep * (t - x1);
  const Tensor level = where(y0 == y1, y0, from_right);
  const Tensor drawn = stop_gradient(
      where(isnan(from_left), where(isnan(from_right), level, from_right), from_left));
  const Tensor rest = where(isfinite(drawn), where(isinf(x0) & isfinite(x1), y1, y0), drawn);
  const Tensor inside = where(plain, between, where(t == x0, y0, where(isnan(t), t, rest)));
  return where(t < at[0], value[0], where(t >= at[-1], value[-1], inside));
}

}  // namespace vt
