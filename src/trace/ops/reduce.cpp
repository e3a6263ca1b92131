// Reductions and scans along an axis: sum … argmin, the moments, logsumexp, norms, and reduce with
// a user's function.
#include <cmath>
#include <limits>
#include <memory>

#include <vt/detail/message.hpp>
#include <vt/detail/small_vec.hpp>
#include <vt/linalg.hpp>

#include "../record/scope.hpp"
#include "support/operands.hpp"

namespace vt::detail::reductions {

/// Puts the reduced axes back with size 1.
inline Tensor kept(const Tensor& reduced, const Shape& before, const Axes& axes, bool keepdims,
                   CallSite where) {
  if (!keepdims || axes.empty()) return reduced;
  Shape shape = before;
  for (int axis : axes) shape[axis] = 1;
  return broadcast_along(reduced, shape, other_axes(axes, before.rank()), where);
}

inline Tensor simple(Op op, std::string_view name, Operand& x, const ReduceAxes& axes,
                     bool keepdims) {
  const Axes over = reduction_axes(name, axes, x.tensor, x.where);
  const Shape before = aval_of(x.tensor).shape;
  return kept(reduced(op, x.tensor, over, x.where), before, over, keepdims, x.where);
}

/// Sums and products: narrow integers widen, and a sum of bools holds their count.
inline Tensor totals(Op op, std::string_view name, Operand& x, const ReduceAxes& axes,
                     bool keepdims) {
  need(name, x.tensor, x.where);
  const Aval& a = aval_of(x.tensor);
  const bool counts = is_bool(a.dtype) && op == Op::reduce_sum;
  const DType d =
      counts ? count_dtype(extent_along(a.shape, reduction_axes(name, axes, x.tensor, x.where)))
             : sum_dtype(a.dtype);
  if (d != aval_of(x.tensor).dtype) x.tensor = cast(std::move(x.tensor), d, x.where);
  return simple(op, name, x, axes, keepdims);
}

inline Tensor extremes(Op op, Op of_bools, std::string_view name, Operand& x,
                       const ReduceAxes& axes, bool keepdims, bool may_be_empty = false) {
  need(name, x.tensor, x.where);
  const Axes over = reduction_axes(name, axes, x.tensor, x.where);
  const Shape before = aval_of(x.tensor).shape;
  if (!may_be_empty && !over.empty() && extent_along(before, over) == 0)
    refuse(ErrorKind::shape, name, "no elements to choose from along axes " + over.str(), x.tensor,
           x.where);
  const DType d = aval_of(x.tensor).dtype;
  if (may_be_empty && extent_along(before, over) == 0) {
    const bool greatest = op == Op::reduce_max;
    const double end = std::numeric_limits<double>::infinity();
    Shape rest;
    for (int axis : other_axes(over, before.rank())) rest.push_back(extent(before, axis));
    const Tensor none = full_tensor(
        is_bool(d) ? Scalar(!greatest) : Scalar(greatest ? -end : end).converted(d), Aval(d, rest));
    return kept(none, before, over, keepdims, x.where);
  }
  if (is_bool(d)) op = of_bools;
  return kept(reduced(op, x.tensor, over, x.where), before, over, keepdims, x.where);
}

/// What a reduction gave, combined with the initial value.
inline Tensor with_initial(std::string_view name, const Tensor& result,
                           const ReduceOptions& options, CallSite where,
                           Tensor (*combine)(Operand, Operand)) {
  if (!options.initial) return result;
  const Tensor& initial = options.initial->tensor;
  need(name, initial, where);
  if (initial.rank() != 0)
    refuse(ErrorKind::shape, name, "the initial value must be a scalar", initial, where);
  return combine(Operand(result, where.file, where.line), initial);
}

inline Tensor truths(Op op, std::string_view name, Operand& x, const ReduceAxes& axes,
                     bool keepdims) {
  need(name, x.tensor, x.where);
  x.tensor = to_bool(std::move(x.tensor), x.where);
  return simple(op, name, x, axes, keepdims);
}

inline Tensor arg(Op op, std::string_view name, Operand& x, std::optional<int> axis,
                  bool keepdims) {
  need(name, x.tensor, x.where);
  const Shape before = x.tensor.shape();
  Tensor t = is_bool(x.tensor.dtype()) ? cast(x.tensor, u8, x.where) : x.tensor;
  Axes over = Axes::first(before.rank());
  int along = 0;
  if (axis) {
    along = normal_axis(name, *axis, x.tensor, x.where);
    over = Axes(along);
  } else {
    t = reshaped(t, Shape{before.elements()}, x.where);
  }
  if (extent(t.shape(), along) == 0)
    refuse(ErrorKind::shape, name, "no elements to choose from", x.tensor, x.where);
  return kept(
      emit(op, make_params(ArgParams{along, count_dtype(extent(t.shape(), along))}), {t}, x.where),
      before, over, keepdims, x.where);
}

inline Tensor arg_of(Op op, std::string_view name, Operand& x, std::optional<int> axis,
                     const ArgOptions& options) {
  if (!options.last) return arg(op, name, x, axis, options.keepdims);
  const UserLine line(x.where);
  need(name, x.tensor, x.where);
  const std::int64_t n = axis
                             ? extent(x.tensor.shape(), normal_axis(name, *axis, x.tensor, x.where))
                             : x.tensor.size();
  Operand turned(axis ? flip(x.tensor, *axis) : flip(ravel(x.tensor)), x.where.file, x.where.line);
  const Tensor from_end = arg(op, name, turned, axis ? *axis : 0, options.keepdims && axis);
  const Tensor index = n - 1 - from_end;
  return options.keepdims && !axis
             ? reshaped(index, Shape::filled(x.tensor.shape().size(), 1), x.where)
             : index;
}

/// The operand of a float reduction, the axes, and the dtype to give back.
struct Real {
  Tensor x;
  Axes axes;
  DType result;
  double count;
};
inline Real real_operand(std::string_view name, Operand& x, const ReduceAxes& axes) {
  need(name, x.tensor, x.where);
  const Axes over = reduction_axes(name, axes, x.tensor, x.where);
  const Tensor t = to_float(x.tensor, x.where);
  return {widened(t, x.where), over, t.dtype(), static_cast<double>(extent_along(t.shape(), over))};
}
inline Tensor finished(const Tensor& result, const Real& r, bool keepdims, CallSite where) {
  return kept(cast(result, r.result, aval_of(result).weak, where), r.x.shape(), r.axes, keepdims,
              where);
}
/// `part` (r.x without the reduced axes) broadcast back over them.
inline Tensor restored(const Tensor& part, const Real& r, CallSite where) {
  return broadcast_along(part, r.x.shape(), other_axes(r.axes, r.x.rank()), where);
}

/// Σ |x − mean|² over the axes. Two passes: the mean first, then the squares of what is left.
inline Tensor squares_around_mean(const Real& r, const Tensor& mean, CallSite where) {
  const Tensor squares = squared_magnitude(r.x - restored(mean, r, where), where);
  return reduced(Op::reduce_sum, squares, r.axes, where);
}
inline Tensor mean_of(const Real& r, CallSite where) {
  return reduced(Op::reduce_sum, r.x, r.axes, where) / r.count;
}

/// Of the outermost of the reduced axes so many elements that both passes over them find the second
/// one's in a near cache; 0: both go over all of x.
inline std::int64_t elements_of_block(const Real& r) {
  constexpr std::int64_t in_cache = 1 << 16, least = 64, worth_blocks = 1 << 17;
  const Shape& shape = r.x.shape();
  if (r.count < worth_blocks || !r.axes.contains(r.x.rank() - 1)) return 0;
  const std::size_t outermost = r.axes[0];
  std::int64_t apart = 1, within = 1;  // elements between two along the axis; those of them reduced
  for (std::size_t d = outermost + 1; d < shape.size(); ++d) {
    apart *= shape[d];
    if (r.axes.contains(static_cast<int>(d))) within *= shape[d];
  }
  std::int64_t block = std::min(in_cache / apart, shape[outermost] / 2);
  while (block > 0 && shape[outermost] % block != 0) --block;
  return block * within >= least ? block : 0;
}

/// Σ |x − mean|², made of that of blocks and of their means (Chan, Golub and LeVeque 1979): x is
/// read once.
inline Tensor squares_of_blocks(const Real& r, std::int64_t block, CallSite where) {
  const int outermost = r.axes[0];
  Shape shape = r.x.shape();
  shape[outermost] /= block;
  shape.insert(shape.begin() + outermost + 1, block);
  Axes inner;
  for (int a : r.axes) inner.push_back(a + 1);
  const double blocks = static_cast<double>(shape[outermost]);
  const Real x{reshape(r.x, shape), inner, r.result, r.count / blocks};
  const Tensor means = mean_of(x, where), squares = squares_around_mean(x, means, where);
  const Real of_blocks{means, {outermost}, r.result, blocks};
  return reduced(Op::reduce_sum, squares, of_blocks.axes, where) +
         x.count * squares_around_mean(of_blocks, mean_of(of_blocks, where), where);
}

/// Real, of complex numbers too.
inline Tensor variance(const Real& r, int ddof, CallSite where) {
  const std::int64_t block = elements_of_block(r);
  const Tensor squares = block > 0 ? squares_of_blocks(r, block, where)
                                   : squares_around_mean(r, mean_of(r, where), where);
  return squares / std::max(r.count - ddof, 0.0);
}

/// x^exponent of x ≥ 0, for lengths: at 0 all its derivatives are 0, those of sums of them too.
inline Tensor length_power(const Tensor& x, double exponent) {
  const Tensor none = x == 0, elsewhere = where(none, 1.0, x);
  return where(none, std::pow(0.0, exponent),
               exponent == 0.5 ? sqrt(elsewhere) : pow(elsewhere, exponent));
}

/// What a prefix of no elements is.
inline Scalar of_no_elements(Op op, DType d) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const bool least = op == Op::cummax || op == Op::cumlogsumexp;
  if (is_bool(d)) return Scalar(op == Op::cummin || op == Op::cumprod);
  return Scalar(least               ? -infinity
                : op == Op::cummin  ? infinity
                : op == Op::cumprod ? 1.0
                                    : 0.0)
      .converted(d);
}
inline Tensor scan(Op op, std::string_view name, Operand& x, int axis,
                   const CumulativeOptions& options) {
  const UserLine line(x.where);
  CumulativeParams p;
  p.axis = normal_axis(name, axis, x.tensor, x.where);
  p.reverse = options.reverse;
  const Tensor all = emit(op, make_params(p), {x.tensor}, x.where);
  const std::int64_t n = extent(all.shape(), p.axis);
  if (!options.exclusive || n == 0) return all;
  std::vector<std::pair<std::int64_t, std::int64_t>> edges(all.shape().size(), {0, 0});
  (options.reverse ? edges[p.axis].second : edges[p.axis].first) = 1;
  const Tensor others = options.reverse ? sliced(all, p.axis, 1, n, 1, x.where)
                                        : sliced(all, p.axis, 0, n - 1, 1, x.where);
  return pad(others, edges,
             full_tensor(of_no_elements(op, all.dtype()), Aval(all.dtype(), Shape{})));
}
inline Tensor running_total(Op op, std::string_view name, Operand& x, int axis,
                            const CumulativeOptions& options) {
  need(name, x.tensor, x.where);
  const bool counts = is_bool(x.tensor.dtype()) && op == Op::cumsum;
  const DType d = counts ? count_dtype(x.tensor.dim(normal_axis(name, axis, x.tensor, x.where)))
                         : sum_dtype(x.tensor.dtype());
  if (d != x.tensor.dtype()) x.tensor = cast(x.tensor, d, x.where);
  return scan(op, name, x, axis, options);
}

/// Σ (y[i] + y[i + 1]) · weights[i] along the axis.
inline Tensor neighbours(std::string_view name, const Operand& y, int along,
                         const Tensor& weights) {
  const Tensor t = to_float(y.tensor, y.where);
  const std::int64_t n = extent(t.shape(), along);
  if (n == 0) refuse(ErrorKind::shape, name, "no points along the axis", y.tensor, y.where);
  return sum(
      (sliced(t, along, 1, n, 1, y.where) + sliced(t, along, 0, n - 1, 1, y.where)) * weights,
      along);
}

/// The body of a general reduction may not look outside; values known now become constants of it.
inline GraphRef closed_body(Recorded recorded, CallSite where) {
  GraphBody& g = recorded.graph;
  if (recorded.captured.empty()) return std::make_shared<const GraphBody>(std::move(g));
  RecycledVec<Equation> constants;
  const std::size_t explicit_inputs = g.inputs.size() - recorded.captured.size();
  for (std::size_t i = 0; i < recorded.captured.size(); ++i) {
    const Tensor& t = recorded.captured[i];
    if (is_tracer(t))
      refuse(ErrorKind::transform, "reduce",
             "the function may use its two arguments and constants, not other values that are "
             "being traced",
             t, where);
    Equation e;
    e.op = Op::constant;
    e.where = where;
    e.params = make_params(ConstantParams{value_of(t, where), aval_of(t)});
    e.outputs.push_back(g.inputs[explicit_inputs + i]);
    constants.push_back(std::move(e));
  }
  g.inputs.resize(explicit_inputs);
  for (Equation& e : g.equations) constants.push_back(std::move(e));
  g.equations = std::move(constants);
  debug_check(g, "vt::reduce");
  return std::make_shared<const GraphBody>(std::move(g));
}

}  // namespace vt::detail::reductions

namespace vt {

namespace rd = detail::reductions;

Tensor sum(Operand x, const ReduceAxes& axes, bool keepdims) {
  return rd::totals(detail::Op::reduce_sum, "sum", x, axes, keepdims);
}
Tensor prod(Operand x, const ReduceAxes& axes, bool keepdims) {
  return rd::totals(detail::Op::reduce_prod, "prod", x, axes, keepdims);
}
Tensor max(Operand x, const ReduceAxes& axes, bool keepdims) {
  return rd::extremes(detail::Op::reduce_max, detail::Op::reduce_any, "max", x, axes, keepdims);
}
Tensor min(Operand x, const ReduceAxes& axes, bool keepdims) {
  return rd::extremes(detail::Op::reduce_min, detail::Op::reduce_all, "min", x, axes, keepdims);
}
Tensor sum(Operand x, const ReduceAxes& axes, const ReduceOptions& options) {
  const detail::UserLine line(x.where);
  const Tensor total = rd::totals(detail::Op::reduce_sum, "sum", x, axes, options.keepdims);
  return rd::with_initial("sum", total, options, x.where, add);
}
Tensor prod(Operand x, const ReduceAxes& axes, const ReduceOptions& options) {
  const detail::UserLine line(x.where);
  const Tensor total = rd::totals(detail::Op::reduce_prod, "prod", x, axes, options.keepdims);
  return rd::with_initial("prod", total, options, x.where, multiply);
}
Tensor max(Operand x, const ReduceAxes& axes, const ReduceOptions& options) {
  const detail::UserLine line(x.where);
  const Tensor most = rd::extremes(detail::Op::reduce_max, detail::Op::reduce_any, "max", x, axes,
                                   options.keepdims, options.initial.has_value());
  return rd::with_initial("max", most, options, x.where, maximum);
}
Tensor min(Operand x, const ReduceAxes& axes, const ReduceOptions& options) {
  const detail::UserLine line(x.where);
  const Tensor least = rd::extremes(detail::Op::reduce_min, detail::Op::reduce_all, "min", x, axes,
                                    options.keepdims, options.initial.has_value());
  return rd::with_initial("min", least, options, x.where, minimum);
}
Tensor any(Operand x, const ReduceAxes& axes, bool keepdims) {
  return rd::truths(detail::Op::reduce_any, "any", x, axes, keepdims);
}
Tensor all(Operand x, const ReduceAxes& axes, bool keepdims) {
  return rd::truths(detail::Op::reduce_all, "all", x, axes, keepdims);
}
Tensor argmax(Operand x, std::optional<Param<int>> axis, bool keepdims) {
  return rd::arg(detail::Op::argmax, "argmax", x, axis, keepdims);
}
Tensor argmin(Operand x, std::optional<Param<int>> axis, bool keepdims) {
  return rd::arg(detail::Op::argmin, "argmin", x, axis, keepdims);
}

Tensor argmax(Operand x, std::optional<Param<int>> axis, const ArgOptions& options) {
  return rd::arg_of(detail::Op::argmax, "argmax", x, axis, options);
}
Tensor argmin(Operand x, std::optional<Param<int>> axis, const ArgOptions& options) {
  return rd::arg_of(detail::Op::argmin, "argmin", x, axis, options);
}

Tensor mean(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  const rd::Real r = rd::real_operand("mean", x, axes);
  return rd::finished(detail::reduced(detail::Op::reduce_sum, r.x, r.axes, x.where) / r.count, r,
                      keepdims, x.where);
}
Tensor var(Operand x, const ReduceAxes& axes, Param<int> ddof, bool keepdims) {
  const detail::UserLine line(x.where);
  rd::Real r = rd::real_operand("var", x, axes);
  r.result = real_dtype(r.result);
  return rd::finished(rd::variance(r, ddof, x.where), r, keepdims, x.where);
}
Tensor std(Operand x, const ReduceAxes& axes, Param<int> ddof, bool keepdims) {
  const detail::UserLine line(x.where);
  rd::Real r = rd::real_operand("std", x, axes);
  r.result = real_dtype(r.result);
  return rd::finished(rd::length_power(rd::variance(r, ddof, x.where), 0.5), r, keepdims, x.where);
}
Tensor var(Operand x, const ReduceAxes& axes, const VarOptions& options) {
  return var(std::move(x), axes, options.ddof, options.keepdims);
}
Tensor std(Operand x, const ReduceAxes& axes, const VarOptions& options) {
  return std(std::move(x), axes, options.ddof, options.keepdims);
}

Tensor logsumexp(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  const rd::Real r = rd::real_operand("logsumexp", x, axes);
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (r.count == 0)
    return rd::finished(detail::reduced(detail::Op::reduce_sum, r.x, r.axes, x.where) - infinity, r,
                        keepdims, x.where);
  // Relative to the largest element, if there is one to be relative to. The shift cancels, so no
  // gradient flows through it.
  const Tensor size = is_complex(r.x.dtype()) ? real(r.x) : r.x;  // of exp(x)
  Tensor largest = stop_gradient(detail::reduced(detail::Op::reduce_max, size, r.axes, x.where));
  largest = where(isfinite(largest), largest, 0.0);
  const Tensor total = detail::reduced(
      detail::Op::reduce_sum, exp(r.x - rd::restored(largest, r, x.where)), r.axes, x.where);
  // All −inf: the sum is 0 and its logarithm has no derivative; the answer is −inf, with none.
  const Tensor none = total == 0;
  const Tensor result = where(none, -infinity, log(where(none, 1.0, total)) + largest);
  return rd::finished(result, r, keepdims, x.where);
}

Tensor count_nonzero(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  detail::need("count_nonzero", x.tensor, x.where);
  return sum(detail::to_bool(x.tensor, x.where), axes, keepdims);
}

Tensor linalg::vector_norm(Operand x, Param<double> order, const ReduceAxes& axes, bool keepdims) {
  const double ord = order;
  const detail::UserLine line(x.where);
  rd::Real r = rd::real_operand("linalg::vector_norm", x, axes);
  r.result = real_dtype(r.result);
  const CallSite w = x.where;
  auto total = [&](const Tensor& t) {
    return detail::reduced(detail::Op::reduce_sum, t, r.axes, w);
  };
  Tensor result;
  if (__builtin_isnan(ord))
    detail::refuse(ErrorKind::value, "linalg::vector_norm", "ord is NaN", x.tensor, w);
  if (__builtin_isinf(ord)) {
    if (r.count == 0)
      detail::refuse(ErrorKind::shape, "linalg::vector_norm", "no elements to choose from",
                     x.tensor, w);
    result = detail::reduced(ord > 0 ? detail::Op::reduce_max : detail::Op::reduce_min, abs(r.x),
                             r.axes, w);
  } else if (ord == 2.0) {
    result = rd::length_power(total(detail::squared_magnitude(r.x, w)), 0.5);
  } else if (ord == 1.0) {
    result = total(abs(r.x));
  } else if (ord == 0.0) {
    result = total(detail::cast(r.x != 0, real_dtype(r.x.dtype()), w));
  } else if (ord > 0 && ord < 0x1p30 && std::fmod(ord, 2.0) == 0) {
    // a polynomial, which is smooth where elements are 0
    result = rd::length_power(
        total(integer_pow(detail::squared_magnitude(r.x, w), static_cast<int>(ord / 2))),
        1.0 / ord);
  } else {
    result = rd::length_power(total(rd::length_power(abs(r.x), ord)), 1.0 / ord);
  }
  return rd::finished(result, r, keepdims, w);
}

Tensor ptp(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  detail::need("ptp", x.tensor, x.where);
  x.tensor = detail::to_number(x.tensor, x.where);
  return rd::extremes(detail::Op::reduce_max, detail::Op::reduce_max, "ptp", x, axes, keepdims) -
         rd::extremes(detail::Op::reduce_min, detail::Op::reduce_min, "ptp", x, axes, keepdims);
}

Tensor average(Operand x, Operand weights, const ReduceAxes& axes) {
  const detail::UserLine line(x.where);
  detail::need("average", x.tensor, x.where);
  detail::need("average", weights.tensor, x.where);
  const detail::Common c =
      detail::common_dtype(detail::aval_of(x.tensor), detail::aval_of(weights.tensor));
  Operand t(detail::cast(x.tensor, c.dtype, x.where), x.where.file, x.where.line);
  if (!detail::broadcasts_to(weights.tensor.shape(), t.tensor.shape()))
    detail::refuse(ErrorKind::shape, "average", "the weights do not broadcast to the data",
                   x.tensor, weights.tensor, x.where);
  const rd::Real r = rd::real_operand("average", t, axes);
  const Tensor w =
      detail::broadcast(detail::cast(weights.tensor, r.x.dtype(), x.where), r.x.shape(), x.where);
  auto total = [&](const Tensor& values) {
    return detail::reduced(detail::Op::reduce_sum, values, r.axes, x.where);
  };
  return rd::finished(total(r.x * w) / total(w), r, false, x.where);
}

Tensor detail::reduce_with(const char* name, Operand x, Operand init, void* context,
                           FlatBinary body, const ReduceAxes& axes) {
  const CallSite w = user_line(x.where);
  need(name, x.tensor, w);
  need(name, init.tensor, w);
  if (init.tensor.rank() != 0)
    refuse(ErrorKind::shape, name, "the initial value must be a scalar", x.tensor, init.tensor, w);
  const Common c = common_dtype(aval_of(x.tensor), aval_of(init.tensor));
  check_literals(name, {&init.tensor, 1}, c.dtype, Literal::value, w);
  const Tensor operand = cast(x.tensor, c.dtype, w), start = cast(init.tensor, c.dtype, w);
  const Axes over = reduction_axes(name, axes, operand, w);
  const Aval scalar(c.dtype, Shape{});
  const Aval avals[2] = {scalar, scalar};
  const FlatFunction f = [&](std::span<const Tensor> arguments) {
    std::vector<Tensor> out = body(context, arguments);
    const Aval& got = aval_of(out.at(0));
    const bool narrows = !got.weak && promote(got.dtype, c.dtype) != c.dtype;
    if (!got.shape.empty() || narrows || (got.weak && category(got.dtype) > category(c.dtype)))
      fail(ErrorKind::shape,
           formatted("vt::{}: the function must map {} and {} to {}, not to {}", name, scalar.str(),
                     scalar.str(), scalar.str(), got.str()),
           w);
    out[0] = cast(out[0], c.dtype, w);
    return out;
  };
  RecordOptions options;
  options.kind = ScopeKind::branch;
  options.transform = "vt::reduce";
  options.where = w;
  ReduceParams p;
  p.axes = over;
  p.body = reductions::closed_body(record(f, avals, options), w);
  return emit(Op::reduce, make_params(std::move(p)), {operand, start}, w);
}

Tensor cumsum(Operand x, Param<int> axis, const CumulativeOptions& options) {
  return rd::running_total(detail::Op::cumsum, "cumsum", x, axis, options);
}
Tensor cumprod(Operand x, Param<int> axis, const CumulativeOptions& options) {
  return rd::running_total(detail::Op::cumprod, "cumprod", x, axis, options);
}
Tensor cummax(Operand x, Param<int> axis, const CumulativeOptions& options) {
  detail::need("cummax", x.tensor, x.where);
  return rd::scan(detail::Op::cummax, "cummax", x, axis, options);
}
Tensor cummin(Operand x, Param<int> axis, const CumulativeOptions& options) {
  detail::need("cummin", x.tensor, x.where);
  return rd::scan(detail::Op::cummin, "cummin", x, axis, options);
}
Tensor cumlogsumexp(Operand x, Param<int> axis, const CumulativeOptions& options) {
  detail::need("cumlogsumexp", x.tensor, x.where);
  x.tensor = detail::to_float(std::move(x.tensor), x.where);
  return rd::scan(detail::Op::cumlogsumexp, "cumlogsumexp", x, axis, options);
}

Tensor trapezoid(Operand y, Param<double> dx, Param<int> axis) {
  const detail::UserLine line(y.where);
  detail::need("trapezoid", y.tensor, y.where);
  return rd::neighbours("trapezoid", y, detail::normal_axis("trapezoid", axis, y.tensor, y.where),
                        Tensor(0.5 * double{dx}));
}
Tensor detail::trapezoid_at(Operand y, const Tensor& x, int axis) {
  const CallSite w = y.where;
  const UserLine line(w);
  need("trapezoid", x, w);
  need("trapezoid", y.tensor, w);
  const int along = normal_axis("trapezoid", axis, y.tensor, w);
  const std::int64_t n = extent(y.tensor.shape(), along);
  Tensor at = x;
  if (x.rank() == 1) {
    Shape shape = Shape::filled(y.tensor.shape().size(), 1);
    shape[along] = x.dim(0);
    at = reshaped(x, shape, w);
  }
  if (at.rank() != y.tensor.rank() || extent(at.shape(), along) != n ||
      !broadcasts_to(at.shape(), y.tensor.shape()))
    refuse(ErrorKind::shape, "trapezoid",
           "x must be a vector along the axis, or broadcast to y with its own points along it",
           y.tensor, x, w);
  const Tensor steps = to_float(diff(at, 1, along), w);
  return reductions::neighbours("trapezoid", y, along, steps * 0.5);
}

Tensor diff(Operand x, Param<int> n, Param<int> axis) {
  const detail::UserLine line(x.where);
  detail::need("diff", x.tensor, x.where);
  if (n < 0)
    detail::refuse(ErrorKind::value, "diff", detail::formatted("cannot take {} differences", n),
                   x.tensor, x.where);
  const int along = detail::normal_axis("diff", axis, x.tensor, x.where);
  Tensor t = x.tensor;
  for (int i = 0; i < n && t.dim(along) > 0; ++i) {
    const Tensor later = detail::sliced(t, along, 1, t.dim(along), 1, x.where),
                 sooner = detail::sliced(t, along, 0, t.dim(along) - 1, 1, x.where);
    t = is_bool(t.dtype()) ? not_equal(later, sooner) : later - sooner;
  }
  return t;
}

}  // namespace vt
