// Shape rules: dtype and shape of every op's results, the element-wise, reduce and scan rules, and
// the table of all of them.
#include "rules.hpp"

#include <string>

#include <vt/detail/message.hpp>

namespace vt::detail::shape_rules {

// --- messages ------------------------------------------------------------------------------------

std::string user_name(Op op) {
  switch (op) {
    case Op::neg: return "vt::negative";
    case Op::sub: return "vt::subtract";
    case Op::mul: return "vt::multiply";
    case Op::div: return "vt::divide";
    case Op::rem: return "vt::remainder";
    case Op::max: return "vt::maximum";
    case Op::min: return "vt::minimum";
    case Op::eq: return "vt::equal";
    case Op::ne: return "vt::not_equal";
    case Op::lt: return "vt::less";
    case Op::le: return "vt::less_equal";
    case Op::gt: return "vt::greater";
    case Op::ge: return "vt::greater_equal";
    case Op::and_: return "vt::bitwise_and";
    case Op::or_: return "vt::bitwise_or";
    case Op::xor_: return "vt::bitwise_xor";
    case Op::not_: return "vt::bitwise_not";
    case Op::is_finite: return "vt::isfinite";
    case Op::is_nan: return "vt::isnan";
    case Op::is_inf: return "vt::isinf";
    case Op::select: return "vt::where";
    case Op::reduce_sum: return "vt::sum";
    case Op::reduce_prod: return "vt::prod";
    case Op::reduce_max: return "vt::max";
    case Op::reduce_min: return "vt::min";
    case Op::reduce_any: return "vt::any";
    case Op::reduce_all: return "vt::all";
    default: return "vt::" + std::string(name_of(op));
  }
}

inline std::string operand_list(std::span<const Aval* const> operands) {
  std::string text;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    if (i) text += " · ";
    if (i == 8 && operands.size() > 9) return text + formatted("… ({} operands)", operands.size());
    text += operands[i]->str();
  }
  return text;
}

void Call::refuse(ErrorKind kind, const std::string& what) const {
  std::string message = user_name(op) + ": " + what;
  if (!operands.empty()) message += ": " + operand_list(operands);
  fail(kind, std::move(message), where);
}

void Call::wrong_params() const {
  refuse(ErrorKind::value, formatted("internal: parameters of another op (kind {})",
                                     params ? static_cast<int>(params->kind) : -1));
}

void Call::bad_dtype(std::size_t i) const {
  const auto takes_any = [&](bool (*kind)(DType)) {
    return (dtypes & dtype_sets::set_of(kind)) != 0;
  };
  const DType own = operand(i).dtype;
  if (is_complex(own) && takes_any(is_float)) {
    const bool order = is_comparison(op) || takes(bool_);
    refuse_dtype(order ? "complex numbers have no order; compare vt::real, vt::imag or vt::abs"
                       : "not defined for complex numbers");
  }
  std::string wanted;
  if (!takes(DType::f16) && takes(DType::f32)) wanted = "f32 or f64";
  else if (!takes_any(is_float))
    wanted = takes_any(is_complex) ? "a complex dtype"
             : !takes_any(is_int)  ? "bool"
             : takes(bool_)        ? "bool or an integer dtype"
                                   : "an integer dtype";
  else if (!takes_any(is_int))
    wanted = takes_any(is_complex) ? "a float or complex dtype" : "a float dtype";
  else
    wanted =
        takes_any(is_complex) ? "an integer, float or complex dtype" : "an integer or float dtype";
  refuse_dtype(formatted("needs {}, not {}", wanted, name_of(own)));
}

// --- checks --------------------------------------------------------------------------------------

void check_size(const Call& c, DType dtype, const Shape& shape) {
  if (!addressable(dtype, shape)) c.refuse_shape(size_fault(dtype, shape));
}

void check_axis(const Call& c, int axis, int rank, const char* what) {
  if (axis < 0 || axis >= rank)
    c.refuse_shape(formatted("{} {} out of range for rank {}", what, axis, rank));
}

void check_axes(const Call& c, const Axes& axes, int rank, const char* what, bool sorted) {
  for (std::size_t i = 0; i < axes.size(); ++i) {
    check_axis(c, axes[i], rank, what);
    for (std::size_t j = 0; j < i; ++j)
      if (axes[j] == axes[i])
        c.refuse_shape(formatted("{} {} names axis {} twice", what, axes.str(), axes[i]));
    if (sorted && i && axes[i] < axes[i - 1])
      c.refuse_shape(formatted("{} {} must be in increasing order", what, axes.str()));
  }
}

void check_disjoint(const Call& c, const Axes& a, const Axes& b, const char* what_a,
                    const char* what_b) {
  for (int axis : a)
    if (b.contains(axis))
      c.refuse_shape(
          formatted("axis {} is in both {} {} and {} {}", axis, what_a, a.str(), what_b, b.str()));
}

void check_numbers(const Call& c, const Shape& numbers, std::size_t count, std::int64_t least,
                   const char* what) {
  if (numbers.size() != count)
    c.refuse_shape(
        formatted("needs {} {} for as many window axes, not {}", count, what, numbers.size()));
  constexpr std::int64_t most = std::int64_t{1} << 40;
  for (std::int64_t n : numbers)
    if (n < least || n > most)
      c.refuse(ErrorKind::value,
               formatted("{} must be between {} and {}, not {}", what, least, most, n));
}

// --- leaves --------------------------------------------------------------------------------------

inline Avals input(const Call& c) {
  c.refuse(ErrorKind::value, "internal: an input is declared by its Graph, not computed");
}

inline Avals constant(const Call& c) {
  const auto& p = c.as<ConstantParams>();
  check_size(c, p.aval.dtype, p.aval.shape);
  if (!p.buffer || p.buffer->bytes < p.aval.bytes())
    c.refuse_shape(
        formatted("{} bytes do not hold {}", p.buffer ? p.buffer->bytes : 0, p.aval.str()));
  return {p.aval};
}

inline Avals full(const Call& c) {
  const auto& p = c.as<FullParams>();
  if (p.value.dtype != p.aval.dtype)
    c.refuse_dtype(formatted("a value of dtype {} cannot fill {}; convert it first",
                             name_of(p.value.dtype), p.aval.str()));
  return {p.aval};
}

inline Avals iota(const Call& c) {
  const auto& p = c.as<IotaParams>();
  if (!c.takes(p.aval.dtype))
    c.refuse_dtype(formatted("needs an integer or float dtype, not {}", name_of(p.aval.dtype)));
  check_axis(c, p.axis, p.aval.shape.rank(), "axis");
  return {p.aval};
}

// --- element-wise --------------------------------------------------------------------------------

inline Avals same(const Call& c) {
  c.need_dtype();
  Avals avals;
  avals.push_back(c.operand(0));
  return avals;
}

/// abs, real, imag: of complex numbers a real one.
inline Avals magnitude(const Call& c) {
  c.need_dtype();
  const Aval& x = c.operand(0);
  return result(real_dtype(x.dtype), x.shape, x.weak);
}

inline Avals to_bool(const Call& c) {
  c.need_dtype();
  return result(DType::bool_, c.operand(0).shape);
}

inline Avals integer_pow(const Call& c) {
  (void)c.as<IntegerPowParams>();
  return same(c);
}

inline Avals convert(const Call& c) {
  const auto& p = c.as<ConvertParams>();
  if (is_complex(c.operand(0).dtype) && !is_complex(p.dtype) && !is_bool(p.dtype))
    c.refuse_dtype(
        formatted("to {} would drop the imaginary part; take vt::real, vt::imag or vt::abs",
                  name_of(p.dtype)));
  return result(p.dtype, c.operand(0).shape, p.weak);
}

inline Avals bitcast(const Call& c) {
  const auto& p = c.as<ConvertParams>();
  if (size_of(p.dtype) != size_of(c.operand(0).dtype))
    c.refuse_dtype(formatted("to {}: element sizes differ ({} and {} bytes)", name_of(p.dtype),
                             size_of(c.operand(0).dtype), size_of(p.dtype)));
  if (is_complex(p.dtype) != is_complex(c.operand(0).dtype))
    c.refuse_dtype(formatted("to {}: use vt::real, vt::imag and vt::complex", name_of(p.dtype)));
  if (is_bool(p.dtype) && !is_bool(c.operand(0).dtype))
    c.refuse_dtype("to bool: only 0 and 1 are bools; compare with 0 instead");
  return result(p.dtype, c.operand(0).shape, p.weak);
}

inline Avals reduce_precision(const Call& c) {
  const auto& p = c.as<PrecisionParams>();
  if (p.exponent_bits < 1)
    c.refuse(ErrorKind::value,
             formatted("exponent_bits must be at least 1, not {}", p.exponent_bits));
  if (p.mantissa_bits < 0)
    c.refuse(ErrorKind::value,
             formatted("mantissa_bits must not be negative, is {}", p.mantissa_bits));
  return same(c);
}

/// The shape shared by all operands that are not scalars.
inline const Shape& common_shape(const Call& c) {
  const Shape* shape = &c.operand(0).shape;
  for (std::size_t i = 1; i < c.operands.size(); ++i) {
    const Shape& other = c.operand(i).shape;
    if (other.empty() || other == *shape) continue;
    if (!shape->empty()) c.refuse_shape("shapes differ");
    shape = &other;
  }
  return *shape;
}

inline void need_equal_dtypes(const Call& c, std::size_t first) {
  for (std::size_t i = first + 1; i < c.operands.size(); ++i)
    if (c.operand(i).dtype != c.operand(first).dtype) c.refuse_dtype("dtypes differ");
}

inline Avals binary(const Call& c) {
  const Aval &a = c.operand(0), &b = c.operand(1);
  if (a.dtype != b.dtype) c.refuse_dtype("dtypes differ");
  c.need_dtype();
  Avals avals;
  avals.emplace_back(a.dtype, common_shape(c), a.weak && b.weak);
  return avals;
}

inline Avals complex(const Call& c) {
  Avals avals = binary(c);
  avals[0].dtype = complex_dtype(avals[0].dtype);
  return avals;
}

inline Avals compare(const Call& c) {
  need_equal_dtypes(c, 0);
  c.need_dtype();
  return result(DType::bool_, common_shape(c));
}

inline Avals select(const Call& c) {
  if (!is_bool(c.operand(0).dtype))
    c.refuse_dtype(formatted("the condition must be bool, not {}", name_of(c.operand(0).dtype)));
  need_equal_dtypes(c, 1);
  return result(c.operand(1).dtype, common_shape(c), c.operand(1).weak && c.operand(2).weak);
}

// --- reductions and scans ------------------------------------------------------------------------

inline Shape without_axes(const Shape& shape, const Axes& axes) {
  Shape left;
  for (int i = 0; i < shape.rank(); ++i)
    if (!axes.contains(i)) left.push_back(shape[i]);
  return left;
}

inline Avals reduction(const Call& c) {
  c.need_dtype();
  const Axes& axes = c.as<AxesParams>().axes;
  const Aval& x = c.operand(0);
  check_axes(c, axes, x.shape.rank(), "axes", true);
  return result(x.dtype, without_axes(x.shape, axes), x.weak);
}

/// Reductions without a neutral element: every result needs at least one element.
inline void need_elements(const Call& c, const Shape& reduced) {
  if (c.operand(0).elements() == 0 && reduced.elements() != 0)
    c.refuse_shape("no elements to choose from");
}

inline Avals extremum(const Call& c) {
  Avals avals = reduction(c);
  need_elements(c, avals[0].shape);
  return avals;
}

inline Avals arg_extremum(const Call& c) {
  c.need_dtype();
  const auto& p = c.as<ArgParams>();
  const Aval& x = c.operand(0);
  check_axis(c, p.axis, x.shape.rank(), "axis");
  if (!is_int(p.dtype))
    c.refuse_dtype(formatted("indices need an integer dtype, not {}", name_of(p.dtype)));
  const std::int64_t extent = x.shape[p.axis];
  const int bits = static_cast<int>(8 * size_of(p.dtype)) - (is_signed_int(p.dtype) ? 1 : 0);
  if (bits < 62 && extent > (std::int64_t{1} << bits))
    c.refuse_dtype(
        formatted("{} does not hold the indices of an axis of {}", name_of(p.dtype), extent));
  Shape shape = without_axes(x.shape, Axes(p.axis));
  need_elements(c, shape);
  return result(p.dtype, std::move(shape));
}

inline Avals cumulative(const Call& c) {
  c.need_dtype();
  check_axis(c, c.as<CumulativeParams>().axis, c.operand(0).shape.rank(), "axis");
  return {c.operand(0)};
}

Avals sort(const Call& c) {
  const auto& p = c.as<SortParams>();
  if (c.operands.empty()) c.refuse_shape("needs at least one operand");
  const Shape& shape = c.operand(0).shape;
  for (std::size_t i = 1; i < c.operands.size(); ++i)
    if (c.operand(i).shape != shape) c.refuse_shape("operands differ in shape");
  check_axis(c, p.axis, shape.rank(), "axis");
  if (p.keys < 1 || static_cast<std::size_t>(p.keys) > c.operands.size())
    c.refuse(ErrorKind::value, formatted("the number of keys must be between 1 and {}, not {}",
                                         c.operands.size(), p.keys));
  for (std::size_t k = 0; k < static_cast<std::size_t>(p.keys); ++k)
    if (is_complex(c.operand(k).dtype))
      c.refuse_dtype("complex numbers have no order; sort by vt::real, vt::imag or vt::abs");
  const std::int64_t n = shape[p.axis];
  if (p.start < 0 || p.start > p.limit || p.limit > n)
    c.refuse_shape(formatted("places {} to {} are no part of axis {} of size {}", p.start, p.limit,
                             p.axis, n));
  Avals avals;
  for (const Aval* operand : c.operands) {
    avals.push_back(*operand);
    avals.back().shape[p.axis] = p.limit - p.start;
  }
  return avals;
}

// --- the table -----------------------------------------------------------------------------------

/// The rule of the ops of a family, where most have one.
constexpr std::optional<Rule> rule_of_family(const OpInfo& op) {
  switch (op.family) {
    case Family::unary: return same;
    case Family::binary: return binary;
    case Family::reduce: return reduction;
    case Family::cumulative: return cumulative;
    default: return std::nullopt;
  }
}

inline constexpr auto own_rules = rule_table<Rule>({
    {Op::input, input},
    {Op::constant, constant},
    {Op::full, full},
    {Op::iota, iota},
    {Op::abs, magnitude},
    {Op::real, magnitude},
    {Op::imag, magnitude},
    {Op::is_finite, to_bool},
    {Op::is_nan, to_bool},
    {Op::is_inf, to_bool},
    {Op::integer_pow, integer_pow},
    {Op::convert, convert},
    {Op::bitcast, bitcast},
    {Op::reduce_precision, reduce_precision},
    {Op::eq, compare},
    {Op::ne, compare},
    {Op::lt, compare},
    {Op::le, compare},
    {Op::gt, compare},
    {Op::ge, compare},
    {Op::complex, complex},
    {Op::select, select},
    {Op::reduce_max, extremum},
    {Op::reduce_min, extremum},
    {Op::argmax, arg_extremum},
    {Op::argmin, arg_extremum},
    {Op::reduce, reduce},
    {Op::sort, sort},
    {Op::reshape, reshape},
    {Op::transpose, transpose},
    {Op::broadcast_in_dim, broadcast_in_dim},
    {Op::concatenate, concatenate},
    {Op::pad, pad},
    {Op::rev, rev},
    {Op::slice, slice},
    {Op::dynamic_slice, dynamic_slice},
    {Op::dynamic_update_slice, dynamic_update_slice},
    {Op::gather, gather},
    {Op::scatter, scatter},
    {Op::scatter_add, scatter},
    {Op::scatter_mul, scatter},
    {Op::scatter_min, scatter},
    {Op::scatter_max, scatter},
    {Op::rows, rows},
    {Op::rows_add, rows_add},
    {Op::windows, windows},
    {Op::overlap_add, overlap_add},
    {Op::dot_general, dot_general},
    {Op::conv_general, conv_general},
    {Op::fft, fft},
    {Op::cholesky, cholesky},
    {Op::triangular_solve, triangular_solve},
    {Op::lu, lu},
    {Op::solve, solve},
    {Op::qr, qr},
    {Op::eigh, eigh},
    {Op::svd, svd},
    {Op::eig, eig},
    {Op::tridiagonal_solve, tridiagonal_solve},
    {Op::psum, lanes_combined},
    {Op::pmax, lanes_combined},
    {Op::pmin, lanes_combined},
    {Op::all_gather, lanes_gathered},
    {Op::all_to_all, lanes_exchanged},
    {Op::ppermute, lanes_permuted},
    {Op::spread, lanes_combined},
    {Op::axis_index, process_index},
    {Op::call, structure},
    {Op::batched_call, batched_call},
    {Op::recursive_call, recursive_call},
    {Op::custom_jvp, structure},
    {Op::custom_vjp, structure},
    {Op::custom_vmap, structure},
    {Op::checkpoint, structure},
    {Op::cond, cond},
    {Op::fused_region, fused_region},
    {Op::while_, while_loop},
    {Op::scan, scan},
    {Op::debug_print, debug_print},
    {Op::check, check},
    {Op::callback, callback},
});
inline constexpr auto table = with_defaults(own_rules, rule_of_family);
static_assert(RuleMissingFor<first_without_rule(table)>::ok);

/// What the op gives for complex numbers, whose parts are a last axis.
Avals of_parts(Op op, const PartsParams& p, std::span<const Aval* const> operands, CallSite where) {
  SmallVec<Aval, 4> whole;
  for (const Aval* a : operands) {
    whole.push_back(*a);
    if (!p.operands || !is_float(a->dtype)) continue;
    whole.back().dtype = complex_dtype(a->dtype);
    whole.back().shape.pop_back();
  }
  SmallVec<const Aval*, 4> pointers;
  for (const Aval& a : whole) pointers.push_back(&a);
  Avals results =
      infer(op, p.own, std::span<const Aval* const>(pointers.data(), pointers.size()), where);
  for (Aval& a : results) {
    if (!is_complex(a.dtype)) continue;
    a.dtype = real_dtype(a.dtype);
    a.shape.push_back(2);
  }
  return results;
}

}  // namespace vt::detail::shape_rules

namespace vt::detail {

std::string size_fault(DType dtype, const Shape& shape) {
  if (shape.size() > most_axes)
    return formatted("result of {} axes; a Tensor has at most {}", shape.size(), most_axes);
  for (std::int64_t extent : shape)
    if (extent < 0) return formatted("negative extent in shape {}", shape.str());
  return formatted("result {}{} is too large to address", name_of(dtype), shape.str());
}

SmallVec<Aval, 1> infer(Op op, const ParamsRef& params, std::span<const Aval* const> operands,
                        CallSite where) {
  if (params && params->is<PartsParams>())
    return shape_rules::of_parts(op, params->as<PartsParams>(), operands, where);
  const shape_rules::Call call{op, params, operands, where, op_table[op].dtypes};
  const int arity = op_table[op].arity;
  if (arity >= 0 && static_cast<std::size_t>(arity) != operands.size())
    call.refuse_shape(
        formatted("takes {} operand{}, not {}", arity, arity == 1 ? "" : "s", operands.size()));
  SmallVec<Aval, 1> avals = shape_rules::table[op](call);
  for (const Aval& a : avals) shape_rules::check_size(call, a.dtype, a.shape);
  return avals;
}

}  // namespace vt::detail
