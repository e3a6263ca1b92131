// Element-wise ops as CUDA text. Numbers of 16-bit dtypes are floats, rounded after every op.
#include "element_source.hpp"

#include <cmath>
#include <limits>

#include <vt/detail/message.hpp>

#include "supported_ops.hpp"

namespace vt::detail::cuda {

namespace element_text {

bool is_half(DType d) { return d == DType::f16 || d == DType::bf16; }

/// The function of the prelude or of CUDA for floats: with the suffix f for f32.
std::string call(const char* name, DType d, std::span<const Operand> v, bool of_cuda) {
  std::string text = name;
  if (of_cuda && d != DType::f64) text += "f";
  text += "(";
  for (std::size_t i = 0; i < v.size(); ++i) text += (i ? ", " : "") + v[i].text;
  return text + ")";
}

/// To one of the 16-bit formats, of an f32.
std::string rounded(DType d, std::string text) {
  if (d == DType::f16) return "vt_round_f16(" + text + ")";
  if (d == DType::bf16) return "vt_round_bf16(" + text + ")";
  return text;
}

// The bits of a number as an unsigned one, and back.
std::string bits(const Operand& x) {
  switch (x.dtype) {
    case DType::f16: return "vt_f16_bits(" + x.text + ")";
    case DType::bf16: return "vt_bf16_bits(" + x.text + ")";
    case DType::f32: return "__float_as_uint(" + x.text + ")";
    case DType::f64: return "(u64)__double_as_longlong(" + x.text + ")";
    default: return x.text;
  }
}
std::string from_bits(const std::string& text, DType to) {
  switch (to) {
    case DType::f16: return "vt_f16((u16)(" + text + "))";
    case DType::bf16: return "vt_bf16((u16)(" + text + "))";
    case DType::f32: return "__uint_as_float((u32)(" + text + "))";
    case DType::f64: return "__longlong_as_double((i64)(" + text + "))";
    default: return formatted("({})({})", register_type(to), text);
  }
}

}  // namespace element_text

const char* register_type(DType d) {
  constexpr const char* names[] = {"bool", "i8",  "u8",  "i16", "u16", "i32", "u32",
                                   "i64",  "u64", "f32", "f32", "f32", "f64"};
  return names[static_cast<int>(d)];
}

const char* memory_type(DType d) { return element_text::is_half(d) ? "u16" : register_type(d); }

std::string from_memory(DType d, const std::string& element) {
  return d == DType::f16    ? "vt_f16(" + element + ")"
         : d == DType::bf16 ? "vt_bf16(" + element + ")"
                            : element;
}
std::string to_memory(DType d, const std::string& number) {
  return d == DType::f16    ? "vt_f16_bits(" + number + ")"
         : d == DType::bf16 ? "vt_bf16_bits(" + number + ")"
                            : number;
}

std::string number(DType d, double value) {
  if (__builtin_isnan(value)) return d == DType::f64 ? "(f64)VT_NAN" : "VT_NAN";
  if (__builtin_isinf(value))
    return std::string(value < 0 ? "-" : "") + (d == DType::f64 ? "(f64)VT_INF" : "VT_INF");
  if (is_float(d)) {
    // the shortest that reads back the same
    std::string text =
        d == DType::f64 ? formatted("{}", value) : formatted("{}", static_cast<float>(value));
    if (text.find_first_of(".e") == std::string::npos) text += ".0";
    if (d != DType::f64) text += "f";
    return "(" + text + ")";
  }
  return formatted("({}){}", register_type(d), static_cast<std::int64_t>(value));
}

std::string literal(const Scalar& s) {
  if (is_float(s.dtype)) return number(s.dtype, s.real);
  if (is_bool(s.dtype)) return s.integer ? "true" : "false";
  if (is_unsigned(s.dtype)) return formatted("({}){}ull", register_type(s.dtype), s.natural);
  if (s.integer == std::numeric_limits<std::int64_t>::min()) return "(i64)(1ull << 63)";
  return formatted("({})({}ll)", register_type(s.dtype), s.integer);
}

std::string converted(const Operand& x, DType to) {
  using namespace element_text;
  if (x.dtype == to) return x.text;
  if (is_bool(to)) return "(" + x.text + " != 0)";
  if (is_float(x.dtype) && is_int(to)) return formatted("vt_{}({})", register_type(to), x.text);
  if (is_half(to)) {
    if (is_half(x.dtype) || x.dtype == DType::f32) return rounded(to, x.text);
    if (is_bool(x.dtype) || size_of(x.dtype) < 4) return rounded(to, "(f32)" + x.text);
    return rounded(to, "vt_odd(vt_sticky(" + x.text + "))");
  }
  return formatted("({}){}", register_type(to), x.text);
}

namespace element_text {

/// An op of the operands `v`, with a result of dtype `dtype`.
struct OpCall {
  Op op;
  DType dtype;
  const ParamsRef& params;
  std::span<const Operand> v;

  DType d() const { return v[0].dtype; }
  bool is_double() const { return d() == DType::f64; }
};

/// An op's text: that of a function, or what `own` makes of the call.
struct OpText {
  enum class Form : std::uint8_t {
    own,
    of_prelude,  ///< of the prelude, for all dtypes
    of_cuda,     ///< of CUDA, for f64, and with the suffix f for f32
    exact,       ///< the same, whose results need no rounding
    in_f64,      ///< vt_special:: with the op's name, of f64 (special_text.cpp)
    infix,
  };
  Form form = Form::own;
  const char* name = nullptr;
  std::string (*own)(const OpCall&) = nullptr;

  constexpr OpText() = default;
  constexpr OpText(Form f, const char* n = nullptr) : form(f), name(n) {}
  template <class F>
    requires std::is_convertible_v<F, std::string (*)(const OpCall&)>
  constexpr OpText(F f) : own(f) {}
};

std::string through_f64(const std::string& name, const OpCall& c) {
  std::string text = name + "(";
  for (std::size_t i = 0; i < c.v.size(); ++i)
    text += (i ? ", " : "") + converted(c.v[i], DType::f64);
  return converted({text + ")", DType::f64}, c.dtype);
}
/// The normal distribution of gelu does not wait for f64.
std::string ndtr(const OpCall& c) {
  return c.is_double() ? through_f64("vt_special::ndtr", c)
                       : rounded(c.dtype, call("normcdf", c.d(), c.v, true));
}
std::string bitcast(const OpCall& c) {
  if (is_bool(c.d()) || is_bool(c.dtype)) return converted(c.v[0], c.dtype);
  return from_bits(bits(c.v[0]), c.dtype);
}
std::string reduce_precision(const OpCall& c) {
  const auto& p = c.params->as<PrecisionParams>();
  return rounded(c.dtype, formatted("vt_precision{}({}, {}, {})", c.d() == DType::f16 ? "_f16" : "",
                                    c.v[0].text, p.mantissa_bits, p.exponent_bits));
}
std::string nextafter(const OpCall& c) {
  if (is_half(c.d()))
    return formatted("vt_next_{}({}, {})", name_of(c.d()), c.v[0].text, c.v[1].text);
  return call("nextafter", c.d(), c.v, true);
}
std::string integer_pow(const OpCall& c) {
  const std::string& x = c.v[0].text;
  const int n = c.params->as<IntegerPowParams>().exponent;
  const auto size = static_cast<unsigned>(n < 0 ? -static_cast<long>(n) : n);
  // 1 and −1 have integer inverses; everything else gives 0, as integer division does.
  if (n < 0 && is_signed_int(c.d()))
    return formatted("vt_pow<{0}>({1}, ({0}){2})", register_type(c.d()), x, n % 2 ? -1 : -2);
  if (n < 0 && !is_float(c.d())) return formatted("({} == 1)", x);
  // Squaring adds up errors: beyond a few steps pow is as near as one rounding.
  if (is_float(c.d()) && size > 16)
    return converted({formatted("pow((f64){}, {}.0)", x, n), DType::f64}, c.dtype);
  return rounded(c.dtype, formatted("vt_{}({}, {}u)", n < 0 ? "inverse_power" : "power", x, size));
}

using enum OpText::Form;
inline constexpr auto texts = rule_table<OpText>({
    {Op::neg, {of_prelude, "vt_neg"}},
    {Op::abs, {of_prelude, "vt_abs"}},
    {Op::sign, {of_prelude, "vt_sign"}},
    {Op::floor, {exact, "floor"}},
    {Op::ceil, {exact, "ceil"}},
    {Op::round, {exact, "rint"}},
    {Op::trunc, {exact, "trunc"}},
    {Op::exp, {of_cuda, "exp"}},
    {Op::exp2, {of_cuda, "exp2"}},
    {Op::expm1, {of_cuda, "expm1"}},
    {Op::log, {of_cuda, "log"}},
    {Op::log1p, {of_cuda, "log1p"}},
    {Op::log2, {of_cuda, "log2"}},
    {Op::sqrt, {of_cuda, "sqrt"}},
    {Op::rsqrt,
     [](const OpCall& c) {
       return rounded(c.dtype, formatted("({} / sqrt{}({}))", number(c.d(), 1),
                                         c.is_double() ? "" : "f", c.v[0].text));
     }},
    {Op::cbrt, {of_cuda, "cbrt"}},
    {Op::sin, {of_cuda, "sin"}},
    {Op::cos, {of_cuda, "cos"}},
    {Op::tan, {of_cuda, "tan"}},
    {Op::asin, {of_cuda, "asin"}},
    {Op::acos, {of_cuda, "acos"}},
    {Op::atan, {of_cuda, "atan"}},
    {Op::sinh, {of_cuda, "sinh"}},
    {Op::cosh, {of_cuda, "cosh"}},
    {Op::tanh, {of_cuda, "tanh"}},
    {Op::asinh, {of_cuda, "asinh"}},
    {Op::acosh, {of_cuda, "acosh"}},
    {Op::atanh, {of_cuda, "atanh"}},
    {Op::sigmoid, {of_prelude, "vt_sigmoid"}},
    {Op::erf, {of_cuda, "erf"}},
    {Op::erfc, {of_cuda, "erfc"}},
    {Op::erf_inv, {of_cuda, "erfinv"}},
    {Op::lgamma, [](const OpCall& c) { return through_f64("lgamma", c); }},
    {Op::digamma, in_f64},
    {Op::gamma, in_f64},
    {Op::erfcx, in_f64},
    {Op::erfc_inv, in_f64},
    {Op::ndtr, ndtr},
    {Op::log_ndtr, in_f64},
    {Op::dawsn, in_f64},
    {Op::expi, in_f64},
    {Op::spence, in_f64},
    {Op::fresnel_sin, in_f64},
    {Op::fresnel_cos, in_f64},
    {Op::bessel_i0e, in_f64},
    {Op::bessel_i1e, in_f64},
    {Op::bessel_k0e, in_f64},
    {Op::bessel_k1e, in_f64},
    {Op::bessel_j0, in_f64},
    {Op::bessel_j1, in_f64},
    {Op::bessel_y0, in_f64},
    {Op::bessel_y1, in_f64},
    {Op::is_finite,
     [](const OpCall& c) { return formatted("(vt_abs({}) < VT_INF)", c.v[0].text); }},
    {Op::is_nan, [](const OpCall& c) { return formatted("vt_nan({})", c.v[0].text); }},
    {Op::is_inf, [](const OpCall& c) { return formatted("(vt_abs({}) == VT_INF)", c.v[0].text); }},
    {Op::integer_pow, integer_pow},
    {Op::not_,
     [](const OpCall& c) {
       return is_bool(c.d()) ? "(!" + c.v[0].text + ")"
                             : formatted("({})~{}", register_type(c.d()), c.v[0].text);
     }},
    {Op::popcount, {of_prelude, "vt_popcount"}},
    {Op::clz, {of_prelude, "vt_clz"}},
    {Op::convert, [](const OpCall& c) { return converted(c.v[0], c.dtype); }},
    {Op::bitcast, bitcast},
    {Op::reduce_precision, reduce_precision},
    {Op::stop_gradient, [](const OpCall& c) { return c.v[0].text; }},
    {Op::add, {of_prelude, "vt_add"}},
    {Op::sub, {of_prelude, "vt_sub"}},
    {Op::mul, {of_prelude, "vt_mul"}},
    {Op::div, {of_prelude, "vt_div"}},
    {Op::rem, {of_prelude, "vt_rem"}},
    {Op::pow, {of_prelude, "vt_pow"}},
    {Op::max, {of_prelude, "vt_max"}},
    {Op::min, {of_prelude, "vt_min"}},
    {Op::atan2, {of_cuda, "atan2"}},
    {Op::nextafter, nextafter},
    {Op::zeta, in_f64},
    {Op::eq, {infix, "=="}},
    {Op::ne, {infix, "!="}},
    {Op::lt, {infix, "<"}},
    {Op::le, {infix, "<="}},
    {Op::gt, {infix, ">"}},
    {Op::ge, {infix, ">="}},
    {Op::and_, {infix, "&"}},
    {Op::or_, {infix, "|"}},
    {Op::xor_, {infix, "^"}},
    {Op::shift_left, {of_prelude, "vt_shl"}},
    {Op::shift_right_logical, {of_prelude, "vt_shr"}},
    {Op::shift_right_arithmetic, {of_prelude, "vt_sar"}},
    {Op::threefry, {of_prelude, "vt_threefry"}},
    {Op::select,
     [](const OpCall& c) {
       return formatted("({} ? {} : {})", c.v[0].text, c.v[1].text, c.v[2].text);
     }},
});
consteval Op first_kernel_without_text() {
  for (int i = 0; i < op_count; ++i)
    if (has_element_source(static_cast<Op>(i)) && !texts.has[i]) return static_cast<Op>(i);
  return Op::count_;
}
static_assert(RuleMissingFor<first_kernel_without_text()>::ok);

}  // namespace element_text

std::string element(Op op, DType dtype, const ParamsRef& params, std::span<const Operand> v) {
  using namespace element_text;
  const OpText& t = texts[op];
  const OpCall c{op, dtype, params, v};
  switch (t.form) {
    case own: return t.own(c);
    case of_prelude: return rounded(dtype, call(t.name, c.d(), v, false));
    case of_cuda: return rounded(dtype, call(t.name, c.d(), v, true));
    case exact: return call(t.name, c.d(), v, true);
    case in_f64: return through_f64("vt_special::" + std::string(name_of(op)), c);
    case infix: return formatted("({} {} {})", v[0].text, t.name, v[1].text);
  }
  return {};
}

}  // namespace vt::detail::cuda
