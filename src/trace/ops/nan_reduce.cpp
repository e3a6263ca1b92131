// Reductions that leave NaN out.
#include <limits>

#include "support/operands.hpp"

namespace vt::detail::nan_reductions {

/// x with `instead` for NaN.
Tensor without_nan(std::string_view name, const Operand& x, double instead) {
  need(name, x.tensor, x.where);
  return is_inexact(x.tensor.dtype()) ? vt::where(isnan(x.tensor), instead, x.tensor) : x.tensor;
}

/// The extreme of what is left; NaN where nothing is.
Tensor extreme(std::string_view name, Tensor (*of)(Operand, const ReduceAxes&, bool), double least,
               const Operand& x, const ReduceAxes& axes, bool keepdims) {
  const UserLine line(x.where);
  need(name, x.tensor, x.where);
  if (!is_float(x.tensor.dtype())) return of(x, axes, keepdims);
  const Tensor most =
      of(Operand(without_nan(name, x, least), x.where.file, x.where.line), axes, keepdims);
  return vt::where(vt::all(isnan(x.tensor), axes, keepdims),
                   std::numeric_limits<double>::quiet_NaN(), most);
}
Tensor index_of_extreme(std::string_view name,
                        Tensor (*of)(Operand, std::optional<Param<int>>, bool), double least,
                        const Operand& x, std::optional<Param<int>> axis, bool keepdims) {
  const UserLine line(x.where);
  need(name, x.tensor, x.where);
  if (!is_float(x.tensor.dtype())) return of(x, axis, keepdims);
  const Tensor index =
      of(Operand(without_nan(name, x, least), x.where.file, x.where.line), axis, keepdims);
  const ReduceAxes over = axis ? ReduceAxes(int{*axis}) : ReduceAxes();
  // Where no number is better than what stands for NaN, the first number is the one.
  const Tensor there = logical_not(isnan(x.tensor)),
               none_better =
                   vt::all(logical_or(x.tensor == least, isnan(x.tensor)), over, keepdims);
  return vt::where(vt::any(there, over, keepdims),
                   vt::where(none_better, argmax(there, axis, keepdims), index), -1);
}

/// A float operand in at least f32, where it is no NaN, and how many of these there are.
struct Counted {
  Tensor x, there, count;
  Axes axes;
  DType result;

  Counted(std::string_view name, const Operand& of, const ReduceAxes& wanted) {
    need(name, of.tensor, of.where);
    const Tensor t = to_float(of.tensor, of.where);
    result = t.dtype();
    x = widened(t, of.where);
    axes = reduction_axes(name, wanted, of.tensor, of.where);
    there = logical_not(isnan(x));
    count = cast(sum(there, axes, true), real_dtype(x.dtype()), of.where);
  }
  Tensor mean() const { return sum(vt::where(there, x, 0.0), axes, true) / count; }
  Tensor finished(const Tensor& kept, DType dtype, bool keepdims, CallSite where) const {
    const Tensor t = cast(kept, dtype, where);
    return keepdims || axes.empty() ? t : squeeze(t, axes);
  }
};

/// Σ |x − mean|² / (n − ddof).
Tensor variance(const Counted& c, int ddof, CallSite where) {
  const Tensor apart = vt::where(c.there, c.x - c.mean(), 0.0);
  const Tensor freedom = c.count - static_cast<double>(ddof);
  return sum(squared_magnitude(apart, where), c.axes, true) /
         vt::where(freedom > 0, freedom, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace vt::detail::nan_reductions

namespace vt {

namespace nr = detail::nan_reductions;

Tensor nansum(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  x.tensor = nr::without_nan("nansum", x, 0);
  return sum(std::move(x), axes, keepdims);
}
Tensor nanprod(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  x.tensor = nr::without_nan("nanprod", x, 1);
  return prod(std::move(x), axes, keepdims);
}
Tensor nanmax(Operand x, const ReduceAxes& axes, bool keepdims) {
  return nr::extreme("nanmax", max, -std::numeric_limits<double>::infinity(), x, axes, keepdims);
}
Tensor nanmin(Operand x, const ReduceAxes& axes, bool keepdims) {
  return nr::extreme("nanmin", min, std::numeric_limits<double>::infinity(), x, axes, keepdims);
}
Tensor nanargmax(Operand x, std::optional<Param<int>> axis, bool keepdims) {
  return nr::index_of_extreme("nanargmax", argmax, -std::numeric_limits<double>::infinity(), x,
                              axis, keepdims);
}
Tensor nanargmin(Operand x, std::optional<Param<int>> axis, bool keepdims) {
  return nr::index_of_extreme("nanargmin", argmin, std::numeric_limits<double>::infinity(), x, axis,
                              keepdims);
}
Tensor nanmean(Operand x, const ReduceAxes& axes, bool keepdims) {
  const detail::UserLine line(x.where);
  const nr::Counted c("nanmean", x, axes);
  return c.finished(c.mean(), c.result, keepdims, x.where);
}
Tensor nanvar(Operand x, const ReduceAxes& axes, Param<int> ddof, bool keepdims) {
  const detail::UserLine line(x.where);
  const nr::Counted c("nanvar", x, axes);
  return c.finished(nr::variance(c, ddof, x.where), real_dtype(c.result), keepdims, x.where);
}
Tensor nanstd(Operand x, const ReduceAxes& axes, Param<int> ddof, bool keepdims) {
  const detail::UserLine line(x.where);
  const nr::Counted c("nanstd", x, axes);
  const Tensor v = nr::variance(c, ddof, x.where), none = v == 0;
  // a length: its derivatives are 0 where it is, as those of vt::std
  return c.finished(where(none, 0.0, sqrt(where(none, 1.0, v))), real_dtype(c.result), keepdims,
                    x.where);
}
Tensor nanvar(Operand x, const ReduceAxes& axes, const VarOptions& options) {
  return nanvar(std::move(x), axes, options.ddof, options.keepdims);
}
Tensor nanstd(Operand x, const ReduceAxes& axes, const VarOptions& options) {
  return nanstd(std::move(x), axes, options.ddof, options.keepdims);
}
Tensor nancumsum(Operand x, Param<int> axis, const CumulativeOptions& options) {
  const detail::UserLine line(x.where);
  x.tensor = nr::without_nan("nancumsum", x, 0);
  return cumsum(std::move(x), axis, options);
}
Tensor nancumprod(Operand x, Param<int> axis, const CumulativeOptions& options) {
  const detail::UserLine line(x.where);
  x.tensor = nr::without_nan("nancumprod", x, 1);
  return cumprod(std::move(x), axis, options);
}

}  // namespace vt
