// Shape rules: dtype and shape of every op's results, the element-wise, reduce and scan rules, and
// the table of all of them.
#include "shape_rules.hpp"

#include <limits>
#include <string>

#include <vt/detail/message.hpp>

namespace vt::detail::shape_rules {

constexpr std::uint32_t dtype_set(bool (*holds)(DType)) {
  std::uint32_t bits = 0;
  for (int i = 0; i < dtype_count; ++i)
    if (holds(static_cast<DType>(i))) bits |= 1u << i;
  return bits;
}

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
  const auto takes_any = [&](bool (*kind)(DType)) { return (dtypes & dtype_set(kind)) != 0; };
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

// --- the table -----------------------------------------------------------------------------------

struct Row {
  Rule rule = nullptr;
  std::uint32_t dtypes = 0;
};

inline constexpr std::uint32_t any_dtype = (1u << dtype_count) - 1;
inline constexpr std::uint32_t bools = 1u;
inline constexpr std::uint32_t ints = dtype_set(is_int);
inline constexpr std::uint32_t floats = dtype_set(is_float);
inline constexpr std::uint32_t complexes = dtype_set(is_complex);
inline constexpr std::uint32_t inexact = floats | complexes;
inline constexpr std::uint32_t reals = ints | floats;
inline constexpr std::uint32_t numbers = reals | complexes;
inline constexpr std::uint32_t ordered = any_dtype & ~complexes;
inline constexpr std::uint32_t words64 = 1u << static_cast<int>(DType::u64);
inline constexpr std::uint32_t bits_and_bools = ints | bools;
inline constexpr std::uint32_t parts =
    1u << static_cast<int>(DType::f32) | 1u << static_cast<int>(DType::f64);

inline constexpr auto table = rule_table<Row>({
    {Op::input, {input, any_dtype}},
    {Op::constant, {constant, any_dtype}},
    {Op::full, {full, any_dtype}},
    {Op::iota, {iota, reals}},

    {Op::neg, {same, numbers}},
    {Op::abs, {magnitude, numbers}},
    {Op::sign, {same, numbers}},
    {Op::floor, {same, floats}},
    {Op::ceil, {same, floats}},
    {Op::round, {same, floats}},
    {Op::trunc, {same, floats}},
    {Op::exp, {same, inexact}},
    {Op::exp2, {same, inexact}},
    {Op::expm1, {same, inexact}},
    {Op::log, {same, inexact}},
    {Op::log1p, {same, inexact}},
    {Op::log2, {same, inexact}},
    {Op::sqrt, {same, inexact}},
    {Op::rsqrt, {same, inexact}},
    {Op::cbrt, {same, floats}},
    {Op::sin, {same, inexact}},
    {Op::cos, {same, inexact}},
    {Op::tan, {same, inexact}},
    {Op::asin, {same, inexact}},
    {Op::acos, {same, inexact}},
    {Op::atan, {same, inexact}},
    {Op::sinh, {same, inexact}},
    {Op::cosh, {same, inexact}},
    {Op::tanh, {same, inexact}},
    {Op::asinh, {same, inexact}},
    {Op::acosh, {same, inexact}},
    {Op::atanh, {same, inexact}},
    {Op::sigmoid, {same, inexact}},
    {Op::erf, {same, floats}},
    {Op::erfc, {same, floats}},
    {Op::erf_inv, {same, floats}},
    {Op::lgamma, {same, floats}},
    {Op::digamma, {same, floats}},
    {Op::gamma, {same, floats}},
    {Op::erfcx, {same, floats}},
    {Op::erfc_inv, {same, floats}},
    {Op::ndtr, {same, floats}},
    {Op::log_ndtr, {same, floats}},
    {Op::dawsn, {same, floats}},
    {Op::expi, {same, floats}},
    {Op::spence, {same, floats}},
    {Op::fresnel_sin, {same, floats}},
    {Op::fresnel_cos, {same, floats}},
    {Op::bessel_i0e, {same, floats}},
    {Op::bessel_i1e, {same, floats}},
    {Op::bessel_k0e, {same, floats}},
    {Op::bessel_k1e, {same, floats}},
    {Op::bessel_j0, {same, floats}},
    {Op::bessel_j1, {same, floats}},
    {Op::bessel_y0, {same, floats}},
    {Op::bessel_y1, {same, floats}},
    {Op::real, {magnitude, complexes}},
    {Op::imag, {magnitude, complexes}},
    {Op::conj, {same, complexes}},
    {Op::is_finite, {to_bool, inexact}},
    {Op::is_nan, {to_bool, inexact}},
    {Op::is_inf, {to_bool, inexact}},
    {Op::integer_pow, {integer_pow, numbers}},
    {Op::not_, {same, bits_and_bools}},
    {Op::popcount, {same, ints}},
    {Op::clz, {same, ints}},
    {Op::convert, {convert, any_dtype}},
    {Op::bitcast, {bitcast, any_dtype}},
    {Op::reduce_precision, {reduce_precision, floats}},
    {Op::stop_gradient, {same, any_dtype}},
    {Op::meeting, {same, any_dtype}},

    {Op::add, {binary, numbers}},
    {Op::sub, {binary, numbers}},
    {Op::mul, {binary, numbers}},
    {Op::div, {binary, numbers}},
    {Op::rem, {binary, reals}},
    {Op::pow, {binary, numbers}},
    {Op::max, {binary, ordered}},
    {Op::min, {binary, ordered}},
    {Op::atan2, {binary, floats}},
    {Op::nextafter, {binary, floats}},
    {Op::zeta, {binary, floats}},
    {Op::eq, {compare, any_dtype}},
    {Op::ne, {compare, any_dtype}},
    {Op::lt, {compare, ordered}},
    {Op::le, {compare, ordered}},
    {Op::gt, {compare, ordered}},
    {Op::ge, {compare, ordered}},
    {Op::and_, {binary, bits_and_bools}},
    {Op::or_, {binary, bits_and_bools}},
    {Op::xor_, {binary, bits_and_bools}},
    {Op::shift_left, {binary, ints}},
    {Op::shift_right_logical, {binary, ints}},
    {Op::shift_right_arithmetic, {binary, ints}},
    {Op::threefry, {binary, words64}},
    {Op::complex, {complex, parts}},
    {Op::select, {select, any_dtype}},

    {Op::reduce_sum, {reduction, numbers}},
    {Op::reduce_prod, {reduction, numbers}},
    {Op::reduce_max, {extremum, ordered}},
    {Op::reduce_min, {extremum, ordered}},
    {Op::reduce_any, {reduction, bools}},
    {Op::reduce_all, {reduction, bools}},
    {Op::argmax, {arg_extremum, ordered}},
    {Op::argmin, {arg_extremum, ordered}},
    {Op::reduce, {reduce, any_dtype}},
    {Op::cumsum, {cumulative, numbers}},
    {Op::cumprod, {cumulative, numbers}},
    {Op::cummax, {cumulative, ordered}},
    {Op::cummin, {cumulative, ordered}},
    {Op::cumlogsumexp, {cumulative, floats}},

    {Op::sort, {sort, any_dtype}},

    {Op::reshape, {reshape, any_dtype}},
    {Op::transpose, {transpose, any_dtype}},
    {Op::broadcast_in_dim, {broadcast_in_dim, any_dtype}},
    {Op::concatenate, {concatenate, any_dtype}},
    {Op::pad, {pad, any_dtype}},
    {Op::rev, {rev, any_dtype}},
    {Op::slice, {slice, any_dtype}},
    {Op::dynamic_slice, {dynamic_slice, any_dtype}},
    {Op::dynamic_update_slice, {dynamic_update_slice, any_dtype}},
    {Op::gather, {gather, any_dtype}},
    {Op::scatter, {scatter, any_dtype}},
    {Op::scatter_add, {scatter, numbers}},
    {Op::scatter_mul, {scatter, numbers}},
    {Op::scatter_min, {scatter, ordered}},
    {Op::scatter_max, {scatter, ordered}},
    {Op::rows, {rows, any_dtype}},
    {Op::rows_add, {rows_add, numbers}},
    {Op::windows, {windows, any_dtype}},
    {Op::overlap_add, {overlap_add, numbers}},
    {Op::dot_general, {dot_general, numbers}},
    {Op::conv_general, {conv_general, numbers}},

    {Op::fft, {fft, parts | complexes}},
    {Op::cholesky, {cholesky, parts | complexes}},
    {Op::triangular_solve, {triangular_solve, parts | complexes}},
    {Op::lu, {lu, parts | complexes}},
    {Op::solve, {solve, parts | complexes}},
    {Op::qr, {qr, parts | complexes}},
    {Op::eigh, {eigh, parts | complexes}},
    {Op::svd, {svd, parts | complexes}},
    {Op::eig, {eig, parts | complexes}},
    {Op::tridiagonal_solve, {tridiagonal_solve, parts | complexes}},
    {Op::psum, {lanes_combined, numbers}},
    {Op::pmax, {lanes_combined, ordered}},
    {Op::pmin, {lanes_combined, ordered}},
    {Op::all_gather, {lanes_gathered, any_dtype}},
    {Op::all_to_all, {lanes_exchanged, any_dtype}},
    {Op::ppermute, {lanes_permuted, any_dtype}},

    {Op::call, {structure, any_dtype}},
    {Op::batched_call, {batched_call, any_dtype}},
    {Op::recursive_call, {recursive_call, any_dtype}},
    {Op::custom_jvp, {structure, any_dtype}},
    {Op::custom_vjp, {structure, any_dtype}},
    {Op::custom_vmap, {structure, any_dtype}},
    {Op::checkpoint, {structure, any_dtype}},
    {Op::cond, {cond, any_dtype}},
    {Op::fused_region, {fused_region, any_dtype}},
    {Op::while_, {while_loop, any_dtype}},
    {Op::scan, {scan, any_dtype}},
    {Op::debug_print, {debug_print, any_dtype}},
    {Op::check, {check, any_dtype}},
    {Op::callback, {callback, any_dtype}},
});
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
  const auto& row = shape_rules::table[op];
  const shape_rules::Call call{op, params, operands, where, row.dtypes};
  const int arity = op_table[op].arity;
  if (arity >= 0 && static_cast<std::size_t>(arity) != operands.size())
    call.refuse_shape(
        formatted("takes {} operand{}, not {}", arity, arity == 1 ? "" : "s", operands.size()));
  SmallVec<Aval, 1> avals = row.rule(call);
  for (const Aval& a : avals) shape_rules::check_size(call, a.dtype, a.shape);
  return avals;
}

}  // namespace vt::detail
