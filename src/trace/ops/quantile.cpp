// Order statistics: quantile, percentile, median, and those that pass NaN by.
#include <cmath>
#include <limits>

#include <vt/detail/message.hpp>

#include "support/ordering.hpp"

namespace vt::detail::quantiles {

/// The data with what is reduced joined to the last axis, and how results are brought back.
struct Rows {
  Tensor x;  ///< [kept…, n]
  std::int64_t n = 1;
  Shape kept, result;  ///< without and, if wanted, with the reduced axes as 1

  Rows(std::string_view name, const Tensor& t, const ReduceAxes& axes, bool keepdims,
       CallSite where) {
    if (is_complex(t.dtype()))
      refuse(ErrorKind::dtype, name,
             "complex numbers have no order; take vt::real, vt::imag or vt::abs", t, where);
    const Axes over = reduction_axes(name, axes, t, where);
    Axes order = other_axes(over, t.rank());
    for (int a : order) kept.push_back(extent(t.shape(), a));
    for (int a : over) order.push_back(a);
    n = extent_along(t.shape(), over);
    if (n == 0) refuse(ErrorKind::shape, name, "no elements to choose from", t, where);
    Shape rows = kept;
    rows.push_back(n);
    x = reshaped(permuted(t, order, where), rows, where);
    result = kept;
    if (!keepdims) return;
    result = t.shape();
    for (int a : over) result[a] = 1;
  }
};

struct Request {
  const char* name;
  const Operand& x;
  const Operand& q;
  double unit;  ///< of q: 1, or 100 for percents
  ReduceAxes axes;
  QuantileMethod method;
  bool keepdims;
  bool skips_nan;
};

/// The value between two neighbours of the order; `weight` ≤ 1 is the second one's.
inline Tensor between(const Tensor& low, const Tensor& high, const Tensor& weight,
                      QuantileMethod method) {
  // A neighbour of no weight may be infinite.
  if (method == QuantileMethod::midpoint) return where(weight == 0.0, low, (low + high) * 0.5);
  return where(weight <= 0.0, low, low * (1.0 - weight) + high * weight);
}

/// One quantile that is known: only its neighbours' places are sorted out.
inline Tensor known_quantile(const Request& r, const Rows& rows, double q, CallSite where) {
  const double position = q * static_cast<double>(rows.n - 1);
  const double at = r.method == QuantileMethod::nearest  ? std::nearbyint(position)
                    : r.method == QuantileMethod::higher ? std::ceil(position)
                                                         : std::floor(position);
  const bool two = r.method == QuantileMethod::linear || r.method == QuantileMethod::midpoint;
  const auto first = static_cast<std::int64_t>(at);
  const std::int64_t count = two && at != position ? 2 : 1;
  const int last = rows.kept.rank();
  const Tensor sorted =
      ordering::sorted({rows.x}, {last, 1, false, first, first + count}, where)[0];
  const auto neighbour = [&](std::int64_t i) {
    return widened(
        to_float(reshaped(sliced(sorted, last, i, i + 1, 1, where), rows.kept, where), where),
        where);
  };
  const Tensor low = neighbour(0);
  if (count == 1) return low;
  const double weight = position - at;
  if (r.method == QuantileMethod::midpoint) return (low + neighbour(1)) * 0.5;
  return low * (1.0 - weight) + neighbour(1) * weight;
}

/// [kept…, quantiles]: any quantiles of rows sorted as a whole; of the elements that are numbers
/// only, if NaNs are passed by.
inline Tensor quantiles_of(const Request& r, const Rows& rows, const Tensor& q, CallSite where) {
  const int last = rows.kept.rank();
  const Tensor sorted = ordering::sorted({rows.x}, {last, 1, false, 0, rows.n}, where)[0];
  Tensor length = cast(Tensor(static_cast<double>(rows.n)), q.dtype(), where);
  if (r.skips_nan && is_float(rows.x.dtype()))
    length = cast(count_nonzero(logical_not(isnan(rows.x)), last, true), q.dtype(), where);
  const Tensor position = q * (length - 1.0);
  const auto at = [&](const Tensor& index) {
    const Tensor i =
        cast(clip(index, 0.0, static_cast<double>(rows.n - 1)), count_dtype(rows.n), where);
    return widened(
        to_float(i.rank() == 1 ? take(sorted, i, last) : take_along_axis(sorted, i, last), where),
        where);
  };
  switch (r.method) {
    case QuantileMethod::lower: return at(floor(position));
    case QuantileMethod::higher: return at(ceil(position));
    case QuantileMethod::nearest: return at(round(position));
    default: break;
  }
  const Tensor low = at(floor(position)), high = at(ceil(position));
  return between(low, high, cast(position - floor(position), low.dtype(), where), r.method);
}

inline Tensor quantile(const Request& r) {
  const CallSite where = r.x.where;
  const UserLine line(where);
  need(r.name, r.x.tensor, where);
  need(r.name, r.q.tensor, where);
  if (r.q.tensor.rank() > 1)
    refuse(ErrorKind::shape, r.name, "the quantiles must be a scalar or a vector", r.x.tensor,
           r.q.tensor, where);
  const DType dtype = to_float(r.x.tensor, where).dtype();
  const Rows rows(r.name, r.x.tensor, r.axes, r.keepdims, where);
  const std::optional<double> known = known_number(r.q.tensor);
  if (known && !(*known >= 0 && *known <= r.unit))
    refuse(ErrorKind::value, r.name, formatted("{} is not between 0 and {}", *known, r.unit),
           r.x.tensor, where);

  const bool is_vector = r.q.tensor.rank() == 1;
  Tensor result;
  if (known && !is_vector && !r.skips_nan) {
    result = known_quantile(r, rows, *known / r.unit, where);
  } else {
    const Tensor given = widened(to_float(r.q.tensor, where), where);
    const Tensor asked =
        reshaped(cast(given, given.dtype(), where), Shape{r.q.tensor.size()}, where) / r.unit;
    const Tensor q = clip(asked, 0.0, 1.0);
    // A quantile that is none has no value; only one that is known could be refused above.
    result = vt::where(equal(asked, q), quantiles_of(r, rows, q, where),
                       std::numeric_limits<double>::quiet_NaN());
    result = moveaxis(result, -1, 0);
  }
  // NaN is not just the last of the order: it makes every quantile NaN.
  if (is_float(rows.x.dtype()) && !r.skips_nan)
    result = vt::where(any(isnan(rows.x), rows.kept.rank()),
                       std::numeric_limits<double>::quiet_NaN(), result);
  Shape shape = rows.result;
  if (is_vector) shape.insert(shape.begin(), r.q.tensor.size());
  return reshaped(cast(result, dtype, where), shape, where);
}

}  // namespace vt::detail::quantiles

namespace vt {

namespace qt = detail::quantiles;

Tensor quantile(Operand x, Operand q, const ReduceAxes& axes, QuantileMethod method,
                bool keepdims) {
  return qt::quantile({"quantile", x, q, 1, axes, method, keepdims, false});
}
Tensor nanquantile(Operand x, Operand q, const ReduceAxes& axes, QuantileMethod method,
                   bool keepdims) {
  return qt::quantile({"nanquantile", x, q, 1, axes, method, keepdims, true});
}
Tensor percentile(Operand x, Operand q, const ReduceAxes& axes, QuantileMethod method,
                  bool keepdims) {
  return qt::quantile({"percentile", x, q, 100, axes, method, keepdims, false});
}
Tensor nanpercentile(Operand x, Operand q, const ReduceAxes& axes, QuantileMethod method,
                     bool keepdims) {
  return qt::quantile({"nanpercentile", x, q, 100, axes, method, keepdims, true});
}
Tensor median(Operand x, const ReduceAxes& axes, bool keepdims) {
  return qt::quantile({"median", x, 0.5, 1, axes, QuantileMethod::midpoint, keepdims, false});
}
Tensor nanmedian(Operand x, const ReduceAxes& axes, bool keepdims) {
  return qt::quantile({"nanmedian", x, 0.5, 1, axes, QuantileMethod::midpoint, keepdims, true});
}

}  // namespace vt
