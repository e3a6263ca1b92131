// Functions of windows: reductions over them, pools, and what these share with convolutions of
// their options.
#include "support/window_options.hpp"

#include <cmath>
#include <limits>

#include <vt/detail/entry_points.hpp>
#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>

#include "../ir/axis_map.hpp"

namespace vt::detail {

Shape numbers_per_axis(std::string_view name, const char* what, const Shape& given,
                       std::size_t count, std::int64_t otherwise, const Tensor& x, CallSite where) {
  if (given.empty()) return Shape::filled(count, otherwise);
  for (std::int64_t n : given)
    if (n < 1)
      refuse(ErrorKind::value, name, formatted("{} must be at least 1, not {}", what, n), x, where);
  if (given.size() == 1) return Shape::filled(count, given[0]);
  if (given.size() != count)
    refuse(ErrorKind::shape, name,
           formatted("{} needs {} numbers, one for each axis, not {}", what, count, given.size()),
           x, where);
  return given;
}

Edges edges_of(std::string_view name, const Padding& padding, const Shape& extents,
               const Shape& windows, const Shape& strides, const Tensor& x, CallSite where) {
  const std::size_t n = extents.size();
  Edges edges{Shape::filled(n, 0), Shape::filled(n, 0)};
  // So that what is computed of them fits: no axis of more elements is in memory.
  const auto need_less = [&](const char* what, std::int64_t number) {
    constexpr std::int64_t most = std::int64_t{1} << 60;
    if (number < -most || number > most)
      refuse(ErrorKind::shape, name, formatted("{} of {} elements is too large", what, number), x,
             where);
  };
  for (std::size_t k = 0; k < n; ++k) {
    need_less("an axis", extents[k]);
    need_less("a window", windows[k]);
    need_less("a stride", strides[k]);
  }
  const std::string& scheme = padding.scheme();
  if (scheme.empty()) {
    if (padding.edges().size() != n)
      refuse(
          ErrorKind::shape, name,
          formatted("padding needs {} pairs, one for each axis, not {}", n, padding.edges().size()),
          x, where);
    for (std::size_t k = 0; k < n; ++k) {
      std::tie(edges.low[k], edges.high[k]) = padding.edges()[k];
      need_less("padding", edges.low[k]);
      need_less("padding", edges.high[k]);
    }
    return edges;
  }
  if (scheme == "VALID") return edges;
  if (scheme != "SAME" && scheme != "SAME_LOWER") {
    constexpr std::string_view known[] = {"VALID", "SAME", "SAME_LOWER"};
    refuse(ErrorKind::value, name,
           formatted("padding must be \"VALID\", \"SAME\", \"SAME_LOWER\" or pairs, not \"{}\"{}",
                     scheme, did_you_mean(scheme, known)),
           x, where);
  }
  for (std::size_t k = 0; k < n; ++k) {
    const std::int64_t places = (extents[k] + strides[k] - 1) / strides[k];
    const std::int64_t missing =
        std::max<std::int64_t>((places - 1) * strides[k] + windows[k] - extents[k], 0);
    edges.low[k] = scheme == "SAME" ? missing / 2 : missing - missing / 2;
    edges.high[k] = missing - edges.low[k];
  }
  return edges;
}

std::string meant_letter(std::string_view letters, char wanted) {
  const std::string_view known(&wanted, 1);
  std::string hint;
  for (std::size_t i = 0; i < letters.size() && hint.empty(); ++i)
    hint = did_you_mean(letters.substr(i, 1), {&known, 1}, '\'');
  return hint;
}

Layout parse_layout(std::string_view name, std::string_view layout, char first, char second,
                    const Tensor& x, CallSite where) {
  if (static_cast<int>(layout.size()) != x.rank())
    refuse(
        ErrorKind::shape, name,
        formatted("the layout \"{}\" has {} letters for {} axes", layout, layout.size(), x.rank()),
        x, where);
  Layout parsed;
  for (std::size_t i = 0; i < layout.size(); ++i) {
    if (layout.find(layout[i]) != i)
      refuse(ErrorKind::value, name,
             formatted("the layout \"{}\" has the letter {} twice", layout, layout[i]), x, where);
    if (layout[i] == first) parsed.first = static_cast<int>(i);
    else if (layout[i] == second) parsed.second = static_cast<int>(i);
    else {
      parsed.spatial.push_back(static_cast<int>(i));
      parsed.letters += layout[i];
    }
  }
  if (parsed.second < 0)
    refuse(ErrorKind::value, name,
           formatted("the layout \"{}\" lacks the letter {}{}", layout, second,
                     meant_letter(parsed.letters, second)),
           x, where);
  return parsed;
}

namespace window_ops {

/// Windows of x along some of its axes.
struct Windows {
  PadParams padding;  ///< of all axes
  WindowParams params;
  bool pads = false;

  /// x's elements in new last axes, one for each window axis; `edge` where a window sticks out.
  Tensor of(const Tensor& x, double edge, CallSite where) const {
    return of(x, full_tensor(Scalar(edge).converted(x.dtype()), Aval(x.dtype(), Shape{})), where);
  }
  Tensor of(const Tensor& x, const Tensor& edge, CallSite where) const {
    const Tensor padded = pads ? emit(Op::pad, make_params(padding), {x, edge}, where) : x;
    return emit(Op::windows, make_params(params), {padded}, where);
  }
  /// The axes of the elements of a window, in what `of` gives for an x of this rank.
  Axes places(int rank) const {
    Axes axes;
    for (std::size_t k = 0; k < params.axes.size(); ++k) axes.push_back(rank + static_cast<int>(k));
    return axes;
  }
};

/// The options have a number per entry of `axes` (increasing).
Windows windows_along(std::string_view name, const Tensor& x, const Axes& axes,
                      const WindowOptions& o, CallSite where) {
  const std::size_t n = axes.size();
  const std::size_t rank = x.rank();
  if (o.window.empty() && n > 0)
    refuse(ErrorKind::value, name, "needs the window's size", x, where);
  Windows w;
  w.params.axes = axes;
  w.params.sizes = numbers_per_axis(name, "the window's size", o.window, n, 1, x, where);
  w.params.strides = numbers_per_axis(name, "strides", o.strides, n, 1, x, where);
  w.params.dilations = numbers_per_axis(name, "window_dilation", o.window_dilation, n, 1, x, where);
  const Shape base = numbers_per_axis(name, "base_dilation", o.base_dilation, n, 1, x, where);
  Shape windows;
  for (std::size_t k = 0; k < n; ++k) {
    w.params.extents.push_back(dilated(x.dim(axes[k]), base[k]));
    windows.push_back(dilated(w.params.sizes[k], w.params.dilations[k]));
  }
  const Edges edges =
      edges_of(name, o.padding, w.params.extents, windows, w.params.strides, x, where);
  w.padding = {Shape::filled(rank, 0), Shape::filled(rank, 0), Shape::filled(rank, 0)};
  for (std::size_t k = 0; k < n; ++k) {
    const std::size_t axis = axes[k];
    w.padding.low[axis] = edges.low[k];
    w.padding.high[axis] = edges.high[k];
    w.padding.interior[axis] = base[k] - 1;
    w.pads = w.pads || edges.low[k] != 0 || edges.high[k] != 0 || base[k] != 1;
    w.params.extents[k] += edges.low[k] + edges.high[k];
    if (w.params.extents[k] < 0)
      refuse(ErrorKind::shape, name,
             formatted("padding crops more of axis {} than there is", axes[k]), x, where);
  }
  return w;
}

/// Less (more) than every other element, or equal to the least (greatest).
double beyond(Op op, DType d) {
  const bool low = op == Op::reduce_max;
  if (is_float(d))
    return low ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  if (is_bool(d)) return low ? 0 : 1;
  const int bits = static_cast<int>(size_of(d)) * 8;
  if (is_unsigned(d)) return low ? 0 : std::ldexp(1.0, bits) - 1;
  return low ? -std::ldexp(1.0, bits - 1) : std::ldexp(1.0, bits - 1) - 1;
}

/// The neutral element as a scalar of exactly that dtype: 64-bit extremes are no doubles.
Tensor edge_of(Op op, DType d) {
  Scalar s = Scalar(beyond(op, d)).converted(d);
  if (d == DType::i64)
    s = Scalar(op == Op::reduce_max ? std::numeric_limits<std::int64_t>::min()
                                    : std::numeric_limits<std::int64_t>::max());
  if (d == DType::u64)
    s = Scalar(op == Op::reduce_max ? std::uint64_t{0} : std::numeric_limits<std::uint64_t>::max());
  return full_tensor(s, Aval(d, Shape{}));
}

/// The extreme element of every window. Its derivative is that of the first one that equals it
/// (NaN: the first NaN): a rule of its own, as reductions share the derivative among equals.
Tensor extremes(const Windows& w, Op op, const Tensor& x, CallSite where) {
  where = user_line(where);
  const Axes places = w.places(x.rank());
  const FlatFunction value = [w, op, places,
                              where](std::span<const Tensor> a) -> std::vector<Tensor> {
    const UserLine line(where);
    return {reduced(op, w.of(a[0], edge_of(op, a[0].dtype()), where), places, where)};
  };
  const Tensor operand[1] = {x};
  if (!is_float(x.dtype())) return value(operand)[0];
  const FlatFunction rule = [w, op, places,
                             where](std::span<const Tensor> a) -> std::vector<Tensor> {
    const UserLine line(where);
    const Tensor y = extremes(w, op, a[0], where);  // the rule's value may be differentiated again
    const Tensor all = w.of(a[0], edge_of(op, a[0].dtype()), where);
    const Shape& shape = all.shape();
    const Axes windows = Axes::first(a[0].rank());
    const std::int64_t size = w.params.sizes.elements();
    const Tensor place = broadcast_along(
        reshaped(counted(i32, Shape{size}, 0, where), w.params.sizes, where), shape, places, where);
    const Tensor hit = (all == broadcast_along(y, shape, windows, where)) | isnan(all);
    const Tensor first = reduced(Op::reduce_min, vt::where(hit, place, size), places, where);
    const Tensor picked = vt::where(place == broadcast_along(first, shape, windows, where),
                                    w.of(a[1], 0.0, where), 0.0);
    return {y, reduced(Op::reduce_sum, picked, places, where)};
  };
  return custom_jvp_flat(value, rule, operand, where)[0];
}

Tensor sums(const Windows& w, const Tensor& x, CallSite where) {
  return reduced(Op::reduce_sum, w.of(x, 0.0, where), w.places(x.rank()), where);
}

/// The spatial axes of a pool, and its windows along them.
Windows pool_windows(std::string_view name, const Operand& x, const PoolOptions& o) {
  need(name, x.tensor, x.where);
  if (o.window.empty())
    refuse(ErrorKind::value, name, "needs a window, as in {.window = {2, 2}}", x.tensor, x.where);
  Axes axes;
  if (!o.layout.empty()) {
    axes = parse_layout(name, o.layout, 'N', 'C', x.tensor, x.where).spatial;
  } else {
    const int last = x.tensor.rank() - 1;
    const int count =
        o.window.size() == 1 ? std::max(last - 1, 1) : static_cast<int>(o.window.size());
    if (last < count)
      refuse(ErrorKind::shape, name, formatted("needs {} spatial axes and one of channels", count),
             x.tensor, x.where);
    for (int axis = last - count; axis < last; ++axis) axes.push_back(axis);
  }
  WindowOptions w;
  w.window = o.window;
  w.strides = o.strides.empty() ? o.window : o.strides;
  w.padding = o.padding;
  w.window_dilation = o.dilation;
  return windows_along(name, x.tensor, axes, w, x.where);
}

/// How many elements of x each window has along each window axis, as an array over the axes of x (1
/// along the others).
Tensor counts(const Windows& w, const Tensor& x, CallSite where) {
  Shape shape = Shape::filled(x.rank(), 1);
  for (std::size_t k = 0; k < w.params.axes.size(); ++k)
    shape[w.params.axes[k]] = w.params.count(k);
  Vec<double> counts(shape.elements(), 1.0);
  std::int64_t inner = shape.elements();
  for (std::size_t k = 0; k < w.params.axes.size() && inner > 0; ++k) {
    const std::size_t axis = w.params.axes[k];
    inner /= shape[axis];
    Vec<double> along;
    for (std::int64_t o = 0; o < shape[axis]; ++o) {
      double n = 0;
      for (std::int64_t p = 0; p < w.params.sizes[k]; ++p) {
        const std::int64_t at =
            o * w.params.strides[k] + p * w.params.dilations[k] - w.padding.low[axis];
        n += at >= 0 && at < x.shape()[axis];
      }
      along.push_back(n);
    }
    for (std::size_t i = 0; i < counts.size(); ++i)
      counts[i] *= along[static_cast<std::int64_t>(i) / inner % shape[axis]];
  }
  // A window of nothing but padding has the average 0.
  for (double& n : counts) n = std::max(n, 1.0);
  return cast(from_host(counts.data(), f64, shape, true, where), x.dtype(), where);
}

}  // namespace window_ops

Tensor reduce_window_with(Operand x, Operand init, void* context, FlatBinary body,
                          const WindowOptions& options) {
  const UserLine line(x.where);
  need("reduce_window", x.tensor, x.where);
  need("reduce_window", init.tensor, x.where);
  if (init.tensor.rank() != 0)
    refuse(ErrorKind::shape, "reduce_window", "the initial value must be a scalar", x.tensor,
           init.tensor, x.where);
  const Common c = common_dtype(aval_of(x.tensor), aval_of(init.tensor));
  check_literals("reduce_window", {&init.tensor, 1}, c.dtype, Literal::value, x.where);
  const Tensor operand = cast(x.tensor, c.dtype, x.where),
               start = cast(init.tensor, c.dtype, x.where);
  const window_ops::Windows w = window_ops::windows_along(
      "reduce_window", operand, Axes::first(operand.rank()), options, x.where);
  return reduce_with("reduce_window",
                     Operand(w.of(operand, start, x.where), x.where.file, x.where.line), start,
                     context, body, w.places(operand.rank()));
}

}  // namespace vt::detail

namespace vt {

namespace wn = detail::window_ops;

Tensor reduce_window(Operand x, WindowReduction reduction, const WindowOptions& options) {
  using detail::Op;
  const CallSite w = x.where;
  const detail::UserLine line(w);
  detail::need("reduce_window", x.tensor, w);
  Tensor t = x.tensor;
  const bool logical = reduction == WindowReduction::any || reduction == WindowReduction::all;
  const bool total = reduction == WindowReduction::sum || reduction == WindowReduction::prod;
  if (logical) t = detail::to_bool(t, w);
  if (total) t = detail::cast(t, detail::sum_dtype(t.dtype()), detail::aval_of(t).weak, w);
  const wn::Windows windows =
      wn::windows_along("reduce_window", t, Axes::first(t.rank()), options, w);
  const Axes places = windows.places(t.rank());
  switch (reduction) {
    case WindowReduction::sum: return wn::sums(windows, t, w);
    case WindowReduction::prod:
      return detail::reduced(Op::reduce_prod, windows.of(t, 1.0, w), places, w);
    case WindowReduction::any:
      return detail::reduced(Op::reduce_any, windows.of(t, 0.0, w), places, w);
    case WindowReduction::all:
      return detail::reduced(Op::reduce_all, windows.of(t, 1.0, w), places, w);
    case WindowReduction::max: return wn::extremes(windows, Op::reduce_max, t, w);
    default: return wn::extremes(windows, Op::reduce_min, t, w);
  }
}

Tensor max_pool(Operand x, const PoolOptions& options) {
  const detail::UserLine line(x.where);
  return wn::extremes(wn::pool_windows("max_pool", x, options), detail::Op::reduce_max, x.tensor,
                      x.where);
}
Tensor min_pool(Operand x, const PoolOptions& options) {
  const detail::UserLine line(x.where);
  return wn::extremes(wn::pool_windows("min_pool", x, options), detail::Op::reduce_min, x.tensor,
                      x.where);
}
Tensor avg_pool(Operand x, const PoolOptions& options) {
  const CallSite w = x.where;
  const detail::UserLine line(w);
  const wn::Windows windows = wn::pool_windows("avg_pool", x, options);
  const Tensor given = detail::to_float(x.tensor, w), t = detail::widened(given, w);
  const Tensor total = wn::sums(windows, t, w);
  const auto size = static_cast<double>(windows.params.sizes.elements());
  const Tensor average =
      options.count_include_pad || !windows.pads ? total / size : total / wn::counts(windows, t, w);
  return detail::cast(average, given.dtype(), detail::aval_of(given).weak, w);
}

}  // namespace vt
