// The element-wise functions of one and two operands and their operators, and where/clamp/clip.
#include <cmath>
#include <limits>

#include "support/elementwise.hpp"

namespace vt::detail::elementwise {

/// The exponent, if it is a literal that repeated multiplication serves well.
inline std::optional<int> literal_exponent(const Tensor& base, const Tensor& exponent) {
  const Node* n = node_of(exponent);
  if (n->op != Op::full || !aval_of(exponent).shape.empty() || is_bool(n->avals[0].dtype))
    return std::nullopt;
  if (is_complex(n->avals[0].dtype)) return std::nullopt;
  const double e = n->params->as<FullParams>().value.to_double();
  const bool integers = !is_inexact(aval_of(base).dtype) && is_int(n->avals[0].dtype);
  if (e != std::trunc(e) || std::fabs(e) > (integers ? 2147483647.0 : 32.0)) return std::nullopt;
  // the result is wider
  if (common_dtype(aval_of(base), n->avals[0]).dtype != aval_of(base).dtype) return std::nullopt;
  return static_cast<int>(e);
}

}  // namespace vt::detail::elementwise

namespace vt {

namespace ew = detail::elementwise;

// --- one operand ---------------------------------------------------------------------------------

Tensor negative(Operand x) { return ew::unary(ew::Op::neg, "negative", ew::Takes::numbers, x); }
Tensor abs(Operand x) {
  detail::need("abs", x.tensor, x.where);
  if (is_bool(x.tensor.dtype()) || is_unsigned(x.tensor.dtype())) return x.tensor;
  if (is_complex(x.tensor.dtype())) return ew::real_part(ew::Op::abs, x);
  return ew::unary(ew::Op::abs, "abs", ew::Takes::numbers, x);
}
Tensor real(Operand x) {
  detail::need("real", x.tensor, x.where);
  return is_complex(x.tensor.dtype()) ? ew::real_part(ew::Op::real, x) : x.tensor;
}
Tensor imag(Operand x) {
  detail::need("imag", x.tensor, x.where);
  if (is_complex(x.tensor.dtype())) return ew::real_part(ew::Op::imag, x);
  return zeros_like(std::move(x));
}
Tensor conj(Operand x) {
  detail::need("conj", x.tensor, x.where);
  return is_complex(x.tensor.dtype()) ? ew::unary(ew::Op::conj, "conj", ew::Takes::numbers, x)
                                      : x.tensor;
}
Tensor angle(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("angle", x.tensor, x.where);
  return atan2(imag(x), real(x));
}
Tensor iscomplex(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("iscomplex", x.tensor, x.where);
  if (!is_complex(x.tensor.dtype())) return zeros(x.tensor.shape(), bool_, x.where);
  return imag(std::move(x)) != 0;
}
Tensor isreal(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("isreal", x.tensor, x.where);
  if (!is_complex(x.tensor.dtype())) return ones(x.tensor.shape(), bool_, x.where);
  return imag(std::move(x)) == 0;
}
Tensor sign(Operand x) { return ew::unary(ew::Op::sign, "sign", ew::Takes::numbers, x); }
Tensor floor(Operand x) { return ew::rounding(ew::Op::floor, "floor", x); }
Tensor ceil(Operand x) { return ew::rounding(ew::Op::ceil, "ceil", x); }
Tensor round(Operand x) { return ew::rounding(ew::Op::round, "round", x); }
Tensor trunc(Operand x) { return ew::rounding(ew::Op::trunc, "trunc", x); }
Tensor exp(Operand x) { return ew::inexact(ew::Op::exp, "exp", x); }
Tensor exp2(Operand x) { return ew::inexact(ew::Op::exp2, "exp2", x); }
Tensor expm1(Operand x) { return ew::inexact(ew::Op::expm1, "expm1", x); }
Tensor log(Operand x) { return ew::inexact(ew::Op::log, "log", x); }
Tensor log1p(Operand x) { return ew::inexact(ew::Op::log1p, "log1p", x); }
Tensor log2(Operand x) { return ew::inexact(ew::Op::log2, "log2", x); }
Tensor log10(Operand x) {
  constexpr double log10_e = 0.43429448190325182765;
  const detail::UserLine line(x.where);
  detail::need("log10", x.tensor, x.where);
  const DType d = x.tensor.dtype();
  if (is_complex(d)) {
    // Part by part: a complex product makes NaN of infinities.
    const Tensor l = log(std::move(x));
    return complex(log10_e * real(l), log10_e * imag(l));
  }
  if (d != f32 && is_inexact(d)) return log(std::move(x)) * log10_e;
  // The constant in two parts of one sign: rounded to f32 its error alone would bring the result
  // over 2 ulp.
  const Tensor l = log2(std::move(x));
  return l * 0x1.344134p-2 + l * 0x1.09f79fef311f1p-26;
}
Tensor sqrt(Operand x) { return ew::inexact(ew::Op::sqrt, "sqrt", x); }
Tensor rsqrt(Operand x) { return ew::inexact(ew::Op::rsqrt, "rsqrt", x); }
Tensor cbrt(Operand x) { return ew::real(ew::Op::cbrt, "cbrt", x); }
Tensor sin(Operand x) { return ew::inexact(ew::Op::sin, "sin", x); }
Tensor cos(Operand x) { return ew::inexact(ew::Op::cos, "cos", x); }
Tensor tan(Operand x) { return ew::inexact(ew::Op::tan, "tan", x); }
Tensor asin(Operand x) { return ew::inexact(ew::Op::asin, "asin", x); }
Tensor acos(Operand x) { return ew::inexact(ew::Op::acos, "acos", x); }
Tensor atan(Operand x) { return ew::inexact(ew::Op::atan, "atan", x); }
Tensor sinh(Operand x) { return ew::inexact(ew::Op::sinh, "sinh", x); }
Tensor cosh(Operand x) { return ew::inexact(ew::Op::cosh, "cosh", x); }
Tensor tanh(Operand x) { return ew::inexact(ew::Op::tanh, "tanh", x); }
Tensor asinh(Operand x) { return ew::inexact(ew::Op::asinh, "asinh", x); }
Tensor acosh(Operand x) { return ew::inexact(ew::Op::acosh, "acosh", x); }
Tensor atanh(Operand x) { return ew::inexact(ew::Op::atanh, "atanh", x); }
Tensor sigmoid(Operand x) { return ew::inexact(ew::Op::sigmoid, "sigmoid", x); }
Tensor erf(Operand x) { return ew::real(ew::Op::erf, "erf", x); }
Tensor erfc(Operand x) { return ew::real(ew::Op::erfc, "erfc", x); }
Tensor erf_inv(Operand x) { return ew::real(ew::Op::erf_inv, "erf_inv", x); }
Tensor lgamma(Operand x) { return ew::real(ew::Op::lgamma, "lgamma", x); }
Tensor digamma(Operand x) { return ew::real(ew::Op::digamma, "digamma", x); }
Tensor isfinite(Operand x) { return ew::classify(ew::Op::is_finite, "isfinite", x, true); }
Tensor isnan(Operand x) { return ew::classify(ew::Op::is_nan, "isnan", x, false); }
Tensor isinf(Operand x) { return ew::classify(ew::Op::is_inf, "isinf", x, false); }

Tensor integer_pow(Operand x, Param<int> exponent) {
  detail::need("integer_pow", x.tensor, x.where);
  if (exponent == 1) return detail::to_number(std::move(x.tensor), x.where);
  return ew::unary(ew::Op::integer_pow, "integer_pow", ew::Takes::numbers, x,
                   detail::make_params(detail::IntegerPowParams{exponent}));
}
Tensor logical_not(Operand x) {
  detail::need("logical_not", x.tensor, x.where);
  x.tensor = detail::to_bool(std::move(x.tensor), x.where);
  return ew::unary(ew::Op::not_, "logical_not", ew::Takes::bits, x);
}
Tensor bitwise_not(Operand x) { return ew::unary(ew::Op::not_, "bitwise_not", ew::Takes::bits, x); }
Tensor popcount(Operand x) { return ew::unary(ew::Op::popcount, "popcount", ew::Takes::shifts, x); }
Tensor clz(Operand x) { return ew::unary(ew::Op::clz, "clz", ew::Takes::shifts, x); }
Tensor bitcast(Operand x, DType dtype) {
  detail::need("bitcast", x.tensor, x.where);
  return detail::emit(ew::Op::bitcast, detail::make_params(detail::ConvertParams{dtype, false}),
                      {x.tensor}, x.where);
}
Tensor reduce_precision(Operand x, Param<int> exponent_bits, Param<int> mantissa_bits) {
  detail::need("reduce_precision", x.tensor, x.where);
  return detail::emit(ew::Op::reduce_precision,
                      detail::make_params(detail::PrecisionParams{exponent_bits, mantissa_bits}),
                      {detail::to_float(std::move(x.tensor), x.where)}, x.where);
}
Tensor meeting(Operand x) {
  detail::need("meeting", x.tensor, x.where);
  return ew::unary(ew::Op::meeting, "meeting", ew::Takes::any, x);
}
Tensor stop_gradient(Operand x) {
  detail::need("stop_gradient", x.tensor, x.where);
  if (!is_inexact(x.tensor.dtype())) return x.tensor;  // nothing flows through them anyway
  return ew::unary(ew::Op::stop_gradient, "stop_gradient", ew::Takes::any, x);
}
Tensor square(Operand x) { return integer_pow(std::move(x), 2); }
Tensor reciprocal(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("reciprocal", x.tensor, x.where);
  return 1.0 / detail::to_float(std::move(x.tensor), x.where);
}
Tensor signbit(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("signbit", x.tensor, x.where);
  const DType d = x.tensor.dtype();
  if (!is_float(d)) return x.tensor < 0;
  return bitcast(x.tensor, ew::bits_of(d)) < 0;
}
Tensor nan_to_num(Operand x, Param<double> nan, std::optional<Param<double>> posinf,
                  std::optional<Param<double>> neginf) {
  const detail::UserLine line(x.where);
  detail::need("nan_to_num", x.tensor, x.where);
  const Tensor& t = x.tensor;
  if (is_complex(t.dtype()))
    return complex(nan_to_num(real(t), nan, posinf, neginf),
                   nan_to_num(imag(t), nan, posinf, neginf));
  if (!is_float(t.dtype())) return t;
  const double most = t.dtype() == f16    ? 65504.0
                      : t.dtype() == bf16 ? 0x1.fep127
                      : t.dtype() == f32  ? 0x1.fffffep127
                                          : std::numeric_limits<double>::max();
  const Tensor finite = where(
      isinf(t), where(t > 0, double{posinf.value_or(most)}, double{neginf.value_or(-most)}), t);
  return where(isnan(t), double{nan}, finite);
}
Tensor deg2rad(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("deg2rad", x.tensor, x.where);
  return detail::to_float(std::move(x.tensor), x.where) * 0.017453292519943295769;
}
Tensor rad2deg(Operand x) {
  const detail::UserLine line(x.where);
  detail::need("rad2deg", x.tensor, x.where);
  return detail::to_float(std::move(x.tensor), x.where) * 57.295779513082320877;
}

// --- two operands --------------------------------------------------------------------------------

Tensor add(Operand a, Operand b) {
  return ew::binary(ew::Op::add, "add", ew::Takes::numbers, a, b);
}
Tensor subtract(Operand a, Operand b) {
  return ew::binary(ew::Op::sub, "subtract", ew::Takes::numbers, a, b);
}
Tensor multiply(Operand a, Operand b) {
  return ew::binary(ew::Op::mul, "multiply", ew::Takes::numbers, a, b);
}
Tensor divide(Operand a, Operand b) {
  return ew::binary(ew::Op::div, "divide", ew::Takes::inexact, a, b);
}
Tensor operator/(Operand a, Operand b) {
  return ew::binary(ew::Op::div, "operator/", ew::Takes::numbers, a, b);
}

Tensor floor_divide(Operand a, Operand b) {
  const detail::UserLine line(a.where);
  ew::meet("floor_divide", ew::Takes::numbers, a, b);
  const Tensor &x = a.tensor, &y = b.tensor;
  if (is_unsigned(ew::dtype_of_operand(a))) return x / y;
  const Tensor r = x % y;
  const Tensor crosses = bitwise_and(r != 0, not_equal(r < 0, y < 0));
  if (!is_float(ew::dtype_of_operand(a))) return x / y - crosses.astype(ew::dtype_of_operand(a));
  // Through the remainder, which is exact: floor(x / y) is one off where the quotient rounds up to
  // an integer.
  const Tensor q = (x - r) / y;
  return where(y == 0, stop_gradient(x / y), round(q - where(crosses, 1, 0)));
}

Tensor fmod(Operand a, Operand b) {
  return ew::binary(ew::Op::rem, "fmod", ew::Takes::reals, a, b);
}
Tensor mod(Operand a, Operand b) {
  const detail::UserLine line(a.where);
  ew::meet("mod", ew::Takes::numbers, a, b);
  Tensor r = a.tensor % b.tensor;
  if (is_unsigned(ew::dtype_of_operand(a))) return r;
  return where(bitwise_and(r != 0, not_equal(r < 0, b.tensor < 0)), r + b.tensor, r);
}

Tensor pow(Operand a, Operand b) {
  detail::need("pow", a.tensor, a.where);
  detail::need("pow", b.tensor, a.where);
  if (const auto exponent = ew::literal_exponent(a.tensor, b.tensor))
    return integer_pow(std::move(a), *exponent);
  return ew::binary(ew::Op::pow, "pow", ew::Takes::numbers, a, b);
}
Tensor maximum(Operand a, Operand b) {
  return ew::binary(ew::Op::max, "maximum", ew::Takes::choice, a, b);
}
Tensor minimum(Operand a, Operand b) {
  return ew::binary(ew::Op::min, "minimum", ew::Takes::choice, a, b);
}
Tensor complex(Operand re, Operand im) {
  Tensor xy[2] = {std::move(re.tensor), std::move(im.tensor)};
  const detail::Common c =
      ew::fit("complex", ew::Takes::floats, detail::Literal::value, xy, re.where);
  for (Tensor& t : xy) t = detail::widened(std::move(t), re.where);
  return detail::emit_fitting(ew::Op::complex, {}, xy, complex_dtype(c.dtype), c.weak, re.where);
}
Tensor atan2(Operand y, Operand x) {
  return ew::binary(ew::Op::atan2, "atan2", ew::Takes::floats, y, x);
}

Tensor hypot(Operand a, Operand b) {
  const detail::UserLine line(a.where);
  ew::meet("hypot", ew::Takes::floats, a, b);
  // Scaled by the larger one, so that squares neither overflow nor vanish. The smaller one keeps
  // its
  // sign: derivatives go on through 0.
  const Tensor x = abs(a.tensor), y = abs(b.tensor), first = x >= y;
  const Tensor large = where(first, x, y), infinite = isinf(x) | isinf(y),
               whole = infinite | (x + y == 0);
  const Tensor small = where(whole, 0.0, where(first, b.tensor, a.tensor)),
               ratio = small / where(whole, 1.0, large);
  // What the smaller one adds, whose rounding errors are small beside the sum.
  const Tensor added = small * ratio / (1.0 + sqrt(1.0 + square(ratio)));
  return where(infinite, std::numeric_limits<double>::infinity(), large + added);
}
Tensor nextafter(Operand a, Operand b) {
  return ew::binary(ew::Op::nextafter, "nextafter", ew::Takes::floats, a, b);
}

Tensor copysign(Operand magnitude, Operand sign) {
  const detail::UserLine line(magnitude.where);
  ew::meet("copysign", ew::Takes::floats, magnitude, sign);
  const Tensor positive = abs(magnitude.tensor);
  return where(bitcast(sign.tensor, ew::bits_of(ew::dtype_of_operand(sign))) < 0, -positive,
               positive);
}

Tensor logaddexp(Operand a, Operand b) {
  const detail::UserLine line(a.where);
  ew::meet("logaddexp", ew::Takes::floats, a, b);
  const Tensor &x = a.tensor, &y = b.tensor;
  // Equal infinities have no difference; everything else goes through the larger one. Chosen by
  // `where`, not by max and abs, so that the derivative at x = y is one half each.
  const Tensor same_infinity = (x == y) & isinf(x);
  const Tensor difference = where(same_infinity, 0.0, x) - where(same_infinity, 0.0, y);
  const Tensor first = difference > 0;
  return where(same_infinity | first, x, y) + log1p(exp(where(first, -difference, difference)));
}

Tensor heaviside(Operand x, Operand at_zero) {
  const detail::UserLine line(x.where);
  ew::meet("heaviside", ew::Takes::floats, x, at_zero);
  const Tensor &t = x.tensor, &z = at_zero.tensor;
  // what is none of these is NaN, and stays it
  return where(t > 0, 1.0, where(t < 0, 0.0, where(t == 0, z, t)));
}
Tensor squared_difference(Operand a, Operand b) {
  const detail::UserLine line(a.where);
  return detail::squared_magnitude(
      ew::binary(ew::Op::sub, "squared_difference", ew::Takes::numbers, a, b), a.where);
}

namespace detail::elementwise {

/// An i64 beside a u64, whose common dtype, f64, holds neither.
Tensor compare_signs(Op op, std::string_view name, const Tensor& a, const Tensor& b,
                     CallSite where) {
  if (aval_of(a).dtype == u64) return compare_signs(mirrored(op), name, b, a, where);
  Tensor xy[2] = {cast(a, u64, where), b};
  fit(name, Takes::any, Literal::value, xy, where);
  const Tensor as_natural = emit_fitting(op, {}, xy, bool_, false, where);
  const Tensor negative = a < 0;
  return op == Op::lt || op == Op::le || op == Op::ne ? negative | as_natural
                                                      : ~negative & as_natural;
}

/// By value, also where a C++ integer lies beyond all that the other operand's dtype holds.
Tensor compare(Op op, std::string_view name, Operand& a, Operand& b) {
  Tensor xy[2] = {std::move(a.tensor), std::move(b.tensor)};
  const Takes takes = op == Op::eq || op == Op::ne ? Takes::any : Takes::choice;
  need(name, xy[0], a.where);
  need(name, xy[1], a.where);
  for (int k = 0; k < 2; ++k) {
    const Aval &weak = aval_of(xy[k]), &other = aval_of(xy[1 - k]);
    // A number that is only known when the program runs keeps its own dtype: a u8 may meet 257.
    if (!weak.weak || !is_int(weak.dtype) || other.weak || !is_int(other.dtype) ||
        literal_of(xy[k]))
      continue;
    xy[k] = cast(std::move(xy[k]), other.dtype == u64 ? i64 : weak.dtype, false, a.where);
  }
  const Aval &x = aval_of(xy[0]), &y = aval_of(xy[1]);
  if ((x.dtype == i64 && y.dtype == u64) || (x.dtype == u64 && y.dtype == i64))
    if (x.weak == y.weak) return compare_signs(op, name, xy[0], xy[1], a.where);
  const DType common = common_dtype(x, y).dtype;
  for (int k = 0; k < 2; ++k) {
    const Scalar* number = misfit(xy[k], common, Literal::value);
    if (!number) continue;
    const bool below = !is_unsigned(number->dtype) && number->integer < 0;
    const Op seen = k == 1 ? op : mirrored(op);  // other `seen` number
    const bool holds = seen == Op::ne || (below ? seen == Op::gt || seen == Op::ge
                                                : seen == Op::lt || seen == Op::le);
    return full_tensor(Scalar(holds), Aval(bool_, aval_of(xy[1 - k]).shape));
  }
  fit(name, takes, Literal::value, xy, a.where);
  return emit_fitting(op, {}, xy, bool_, false, a.where);
}

}  // namespace detail::elementwise

Tensor equal(Operand a, Operand b) { return ew::compare(ew::Op::eq, "equal", a, b); }
Tensor not_equal(Operand a, Operand b) { return ew::compare(ew::Op::ne, "not_equal", a, b); }
Tensor less(Operand a, Operand b) { return ew::compare(ew::Op::lt, "less", a, b); }
Tensor less_equal(Operand a, Operand b) { return ew::compare(ew::Op::le, "less_equal", a, b); }
Tensor greater(Operand a, Operand b) { return ew::compare(ew::Op::gt, "greater", a, b); }
Tensor greater_equal(Operand a, Operand b) {
  return ew::compare(ew::Op::ge, "greater_equal", a, b);
}

Tensor bitwise_and(Operand a, Operand b) {
  return ew::binary(ew::Op::and_, "bitwise_and", ew::Takes::bits, a, b);
}
Tensor bitwise_or(Operand a, Operand b) {
  return ew::binary(ew::Op::or_, "bitwise_or", ew::Takes::bits, a, b);
}
Tensor bitwise_xor(Operand a, Operand b) {
  return ew::binary(ew::Op::xor_, "bitwise_xor", ew::Takes::bits, a, b);
}
Tensor logical_and(Operand a, Operand b) { return ew::logical(ew::Op::and_, "logical_and", a, b); }
Tensor logical_or(Operand a, Operand b) { return ew::logical(ew::Op::or_, "logical_or", a, b); }
Tensor logical_xor(Operand a, Operand b) { return ew::logical(ew::Op::xor_, "logical_xor", a, b); }
Tensor shift_left(Operand a, Operand b) {
  return ew::binary(ew::Op::shift_left, "shift_left", ew::Takes::shifts, a, b);
}
Tensor shift_right_logical(Operand a, Operand b) {
  return ew::binary(ew::Op::shift_right_logical, "shift_right_logical", ew::Takes::shifts, a, b);
}
Tensor shift_right_arithmetic(Operand a, Operand b) {
  return ew::binary(ew::Op::shift_right_arithmetic, "shift_right_arithmetic", ew::Takes::shifts, a,
                    b);
}
Tensor operator>>(Operand a, Operand b) {
  detail::need("operator>>", a.tensor, a.where);
  detail::need("operator>>", b.tensor, a.where);
  const DType d = detail::common_dtype(detail::aval_of(a.tensor), detail::aval_of(b.tensor)).dtype;
  return is_unsigned(d) ? shift_right_logical(std::move(a), std::move(b))
                        : shift_right_arithmetic(std::move(a), std::move(b));
}

Tensor isclose(Operand a, Operand b, Param<double> rtol, Param<double> atol, bool equal_nan) {
  const detail::UserLine line(a.where);
  detail::need("isclose", a.tensor, a.where);
  detail::need("isclose", b.tensor, a.where);
  // exact: no integer is rounded but the largest of 64 bits
  if (!is_inexact(a.tensor.dtype()) && !is_inexact(b.tensor.dtype())) {
    a.tensor = a.tensor.astype(f64);
    b.tensor = b.tensor.astype(f64);
  }
  ew::meet("isclose", ew::Takes::any, a, b);
  const Tensor &x = a.tensor, &y = b.tensor;
  const Tensor near = abs(x - y) <= double{atol} + double{rtol} * abs(y);
  Tensor close = where(isfinite(x) & isfinite(y), near, x == y);
  if (equal_nan) close = close | (isnan(x) & isnan(y));
  return close;
}
Tensor allclose(Operand a, Operand b, Param<double> rtol, Param<double> atol, bool equal_nan) {
  const detail::UserLine line(a.where);
  return all(isclose(std::move(a), std::move(b), rtol, atol, equal_nan));
}

// --- choose --------------------------------------------------------------------------------------

Tensor where(Operand condition, Operand if_true, Operand if_false) {
  const CallSite line = condition.where;
  Tensor operands[3] = {std::move(condition.tensor), std::move(if_true.tensor),
                        std::move(if_false.tensor)};
  for (const Tensor& t : operands) detail::need("where", t, line);
  operands[0] = detail::to_bool(std::move(operands[0]), line);
  const detail::Common c =
      detail::common_dtype(detail::aval_of(operands[1]), detail::aval_of(operands[2]));
  detail::check_literals("where", std::span<const Tensor>(operands).subspan(1), c.dtype,
                         detail::Literal::value, line);
  const Shape* shape = nullptr;
  bool fits = true;
  for (Tensor& t : operands) {
    if (&t != operands) t = detail::cast(std::move(t), c.dtype, c.weak, line);
    const Shape& s = detail::aval_of(t).shape;
    if (s.empty()) continue;
    fits = fits && (!shape || *shape == s);
    shape = &s;
  }
  if (!fits) {
    const Shape common = detail::broadcast_shape("where", operands, line);
    for (Tensor& t : operands)
      if (t.rank() != 0) t = detail::broadcast(t, common, line);
  }
  return detail::emit_fitting(ew::Op::select, {}, operands, c.dtype, c.weak, line);
}
Tensor select(TensorSpan conditions, TensorSpan choices, Operand otherwise) {
  const CallSite w = otherwise.where;
  const detail::UserLine line(w);
  if (conditions.size() != choices.size() || conditions.empty())
    detail::refuse(ErrorKind::shape, "select",
                   detail::formatted("{} conditions and {} choices: needs as many of both, and at "
                                     "least one",
                                     conditions.size(), choices.size()),
                   std::span<const Tensor>(), w);
  std::vector<Tensor> values(choices.begin(), choices.end());
  values.push_back(std::move(otherwise.tensor));
  for (const Tensor& t : values) detail::need("select", t, w);
  const detail::Common c = detail::common_dtype(values);
  detail::check_literals("select", values, c.dtype, detail::Literal::value, w);
  Tensor chosen = detail::cast(values.back(), c.dtype, c.weak, w);
  for (std::size_t i = conditions.size(); i-- > 0;)
    chosen = where(conditions[i], detail::cast(values[i], c.dtype, c.weak, w), chosen);
  return chosen;
}
Tensor clamp(Operand low, Operand x, Operand high) {
  const detail::UserLine line(x.where);
  return minimum(maximum(std::move(x), std::move(low)), std::move(high));
}
Tensor clip(Operand x, std::optional<Operand> low, std::optional<Operand> high) {
  const detail::UserLine line(x.where);
  detail::need("clip", x.tensor, x.where);
  const auto bound = [&](ew::Op op, std::optional<Operand>& limit) {
    if (limit) x.tensor = ew::binary(op, "clip", ew::Takes::choice, x, *limit);
  };
  bound(ew::Op::max, low);
  bound(ew::Op::min, high);
  return x.tensor;
}

}  // namespace vt
