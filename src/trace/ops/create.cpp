// The functions that make Tensors from nothing but a shape: zeros, full, eye, ranges; and astype
// and reshape of Tensor.
#include <cmath>
#include <limits>

#include <vt/detail/message.hpp>

#include "support/operands.hpp"

namespace vt {

namespace detail::create {

inline Tensor like(std::string_view name, Operand& x, Scalar value) {
  need(name, x.tensor, x.where);
  const Aval& a = aval_of(x.tensor);
  return full_tensor(value.converted(a.dtype), Aval(a.dtype, a.shape));
}

inline std::span<const Tensor> nothing() { return {}; }

/// Throws if `dtype` is one of integers and cannot hold the first or the last of a row of numbers.
inline void check_ends(std::string_view name, Scalar first, Scalar last, DType dtype,
                       CallSite where) {
  for (const Scalar& end : {first, last})
    if (!integer_fits(end, dtype, Literal::value))
      refuse(ErrorKind::dtype, name,
             formatted("{} does not fit {}", integer_text(end), name_of(dtype)), nothing(), where);
}

/// Throws unless a list of as many numbers in f64 can be counted.
inline void check_count(std::string_view name, std::int64_t count, CallSite where) {
  if (count < 0)
    refuse(ErrorKind::value, name, formatted("cannot make {} elements", count), nothing(), where);
  need_size(name, f64, Shape{count}, nothing(), where);
}

/// `i` (an iota) scaled: i · step + start, without the steps that do nothing.
inline Tensor scaled(Tensor i, Scalar start, Scalar step) {
  if (!step.is_value(1)) i = i * full_tensor(step, Aval(step.dtype, Shape{}));
  if (!start.is_value(0)) i = i + full_tensor(start, Aval(start.dtype, Shape{}));
  return i;
}

}  // namespace detail::create

Tensor zeros(const Shape& shape, DType dtype, CallSite where) {
  return detail::filled("zeros", detail::Scalar(0), dtype, shape, where);
}
Tensor ones(const Shape& shape, DType dtype, CallSite where) {
  return detail::filled("ones", detail::Scalar(1), dtype, shape, where);
}

Tensor full(const Shape& shape, Operand value, std::optional<DType> dtype) {
  detail::need("full", value.tensor, value.where);
  if (dtype)
    detail::check_literals("full", {&value.tensor, 1}, *dtype, detail::Literal::value, value.where);
  Tensor v = detail::cast(value.tensor, dtype.value_or(value.tensor.dtype()), value.where);
  if (detail::node_of(v)->op == detail::Op::full && v.rank() == 0)
    return detail::filled("full", detail::node_of(v)->params->as<detail::FullParams>().value,
                          v.dtype(), shape, value.where);
  if (!detail::broadcasts_to(v.shape(), shape))
    detail::refuse(ErrorKind::shape, "full",
                   detail::formatted("the value does not broadcast to {}", shape.str()), v,
                   value.where);
  detail::need_size("full", v.dtype(), shape, {&v, 1}, value.where);
  return detail::broadcast(v, shape, value.where);
}

Tensor eye(Param<std::int64_t> rows, std::optional<Param<std::int64_t>> columns,
           Param<int> diagonal, DType dtype, CallSite where) {
  const detail::UserLine line(where);
  const Shape shape{rows, columns.value_or(rows)};
  if (shape[0] < 0 || shape[1] < 0)
    detail::refuse(ErrorKind::value, "eye",
                   detail::formatted("negative extent in shape {}", shape.str()),
                   detail::create::nothing(), where);
  detail::need_size("eye", i64, shape, detail::create::nothing(), where);
  const Tensor on = equal(detail::counted(i64, shape, 0, where) + int{diagonal},
                          detail::counted(i64, shape, 1, where));
  return detail::cast(on, dtype, where);
}

Tensor zeros_like(Operand x) { return detail::create::like("zeros_like", x, detail::Scalar(0)); }
Tensor ones_like(Operand x) { return detail::create::like("ones_like", x, detail::Scalar(1)); }
Tensor full_like(Operand x, Operand value) {
  detail::need("full_like", x.tensor, x.where);
  return full(x.tensor.shape(), std::move(value), x.tensor.dtype());
}

Tensor arange(Param<std::int64_t> stop, std::optional<DType> dtype, CallSite where) {
  return detail::integer_range(0, stop, 1, dtype, where);
}

Tensor detail::integer_range(std::int64_t start, std::int64_t stop, std::int64_t step,
                             std::optional<DType> dtype, CallSite where) {
  const UserLine line(where);
  if (step == 0)
    refuse(ErrorKind::value, "arange", "the step must not be 0", create::nothing(), where);
  std::uint64_t count = 0;  // the distance of two int64 fits in a uint64
  if (step > 0 && stop > start)
    count = (static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start) - 1) /
                static_cast<std::uint64_t>(step) +
            1;
  else if (step < 0 && stop < start)
    count = (static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop) - 1) /
                (0 - static_cast<std::uint64_t>(step)) +
            1;
  if (count >= (std::uint64_t{1} << 59))
    refuse(ErrorKind::shape, "arange", formatted("{} elements are too many to address", count),
           create::nothing(), where);
  const std::int64_t last = count ? start + static_cast<std::int64_t>(count - 1) * step : start;
  constexpr std::int64_t low = std::numeric_limits<std::int32_t>::min(),
                         high = std::numeric_limits<std::int32_t>::max();
  const bool narrow =
      std::min(start, last) >= low && std::max(start, last) <= high && step >= low && step <= high;
  const DType wanted = dtype.value_or(narrow ? i32 : i64);
  if (count) create::check_ends("arange", Scalar(start), Scalar(last), wanted, where);
  if (is_complex(wanted))
    return cast(integer_range(start, stop, step, real_dtype(wanted), where), wanted, where);
  const Shape shape{static_cast<std::int64_t>(count)};
  if (is_bool(wanted))
    return cast(create::scaled(counted(i64, shape, 0, where), Scalar(start), Scalar(step)), wanted,
                where);
  if (is_float(wanted) && (start != 0 || step != 1 || size_of(wanted) == 2)) {
    // Counted exactly, then rounded once.
    return cast(create::scaled(counted(i64, shape, 0, where), Scalar(start), Scalar(step)), wanted,
                where);
  }
  return create::scaled(counted(wanted, shape, 0, where), Scalar(start).converted(wanted),
                        Scalar(step).converted(wanted));
}

Tensor detail::real_range(double start, double stop, double step, std::optional<DType> dtype,
                          CallSite where) {
  const UserLine line(where);
  if (step == 0 || !__builtin_isfinite(start) || !__builtin_isfinite(stop) ||
      !__builtin_isfinite(step))
    refuse(ErrorKind::value, "arange",
           formatted("needs finite ends and a step other than 0, not {} to {} by {}", start, stop,
                     step),
           create::nothing(), where);
  const double count = std::max(0.0, std::ceil((stop - start) / step));
  if (count >= 0x1p59)
    refuse(ErrorKind::shape, "arange", formatted("{} elements are too many to address", count),
           create::nothing(), where);
  const DType wanted = dtype.value_or(default_dtype());
  const auto whole = [](double x) { return Scalar(Scalar(x).converted(x < 0 ? i64 : u64)); };
  if (count > 0)
    create::check_ends("arange", whole(start), whole(start + (count - 1) * step), wanted, where);
  const Tensor i = counted(f64, Shape{static_cast<std::int64_t>(count)}, 0, where);
  return cast(create::scaled(i, Scalar(start), Scalar(step)), wanted, where);
}

Tensor detail::spaced(const Tensor& i, double start, double stop, std::int64_t steps,
                      bool endpoint) {
  if (steps == 0) return create::scaled(i, Scalar(start), Scalar(0.0));
  const auto n = static_cast<double>(steps);
  const double width = stop - start, step = width / n;
  Tensor x;
  if (__builtin_isfinite(start) && __builtin_isfinite(stop) && !__builtin_isfinite(width)) {
    const Tensor part = i / n;
    x = start * (1.0 - part) + stop * part;
  } else if (std::abs(step) < std::numeric_limits<double>::min() && width != 0) {
    x = create::scaled(i / n, Scalar(start), Scalar(width));  // the step has lost its digits
  } else {
    x = create::scaled(i, Scalar(start), Scalar(step));
  }
  return endpoint ? vt::where(i == n, stop, x) : x;  // not a rounding away from it
}

Tensor linspace(Param<double> start, Param<double> stop, Param<std::int64_t> count, bool endpoint,
                DType dtype, CallSite where) {
  const detail::UserLine line(where);
  detail::create::check_count("linspace", count, where);
  const std::int64_t steps = count - (endpoint ? 1 : 0);
  Tensor x =
      detail::spaced(detail::counted(f64, Shape{count}, 0, where), start, stop, steps, endpoint);
  if (!is_inexact(dtype)) x = floor(x);
  return detail::cast(x, dtype, where);
}

Tensor detail::spaced_between(const Operand& start, const Operand& stop, std::int64_t count,
                              bool endpoint) {
  const CallSite w = start.where;
  const UserLine line(w);
  need("linspace", start.tensor, w);
  need("linspace", stop.tensor, w);
  create::check_count("linspace", count, w);
  const Tensor both[2] = {start.tensor, stop.tensor};
  Common c = common_dtype(both);
  if (!is_inexact(c.dtype)) c.dtype = default_dtype();
  const Shape each = broadcast_shape("linspace", both, w);
  const Tensor first = cast(start.tensor, c.dtype, w), last = cast(stop.tensor, c.dtype, w);
  Shape along = Shape::filled(each.size() + 1, 1);
  along[0] = count;
  const std::int64_t steps = std::max<std::int64_t>(count - (endpoint ? 1 : 0), 1);
  const Tensor i = counted(real_dtype(c.dtype), along, 0, w), part = i / static_cast<double>(steps);
  const Tensor between = first * (1.0 - part) + last * part;
  Shape shape = each;
  shape.insert(shape.begin(), count);
  const Tensor x = where(i == 0, first, between);
  return broadcast(endpoint && count > 1 ? where(i == static_cast<double>(steps), last, x) : x,
                   shape, w);
}

Tensor iota(DType dtype, const Shape& shape, Param<int> given_axis, CallSite where) {
  const int axis = given_axis < 0 ? given_axis + shape.rank() : int{given_axis};
  if (is_bool(dtype)) return detail::cast(detail::counted(i32, shape, axis, where), bool_, where);
  if (is_complex(dtype))
    return detail::cast(detail::counted(real_dtype(dtype), shape, axis, where), dtype, where);
  return detail::counted(dtype, shape, axis, where);
}

}  // namespace vt
