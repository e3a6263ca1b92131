// Element-wise ops as CUDA text. Numbers of 16-bit dtypes are floats, rounded after every op.
#include "element_source.hpp"

#include <cmath>
#include <limits>

#include <vt/detail/message.hpp>

#include "op_rows.hpp"

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

/// Of operands in f64; the result is rounded once.
std::string through_f64(const char* name, DType d, std::span<const Operand> v) {
  std::string text = std::string(name) + "(";
  for (std::size_t i = 0; i < v.size(); ++i) text += (i ? ", " : "") + converted(v[i], DType::f64);
  return converted({text + ")", DType::f64}, d);
}

// Ops whose text is a function's name: of the prelude (for all dtypes) or of CUDA (floats).
struct Named {
  Op op;
  const char* name;
  bool of_cuda;
};
constexpr Named named[] = {
    {Op::neg, "vt_neg", false},
    {Op::abs, "vt_abs", false},
    {Op::sign, "vt_sign", false},
    {Op::exp, "exp", true},
    {Op::exp2, "exp2", true},
    {Op::expm1, "expm1", true},
    {Op::log, "log", true},
    {Op::log1p, "log1p", true},
    {Op::log2, "log2", true},
    {Op::sqrt, "sqrt", true},
    {Op::cbrt, "cbrt", true},
    {Op::sin, "sin", true},
    {Op::cos, "cos", true},
    {Op::tan, "tan", true},
    {Op::asin, "asin", true},
    {Op::acos, "acos", true},
    {Op::atan, "atan", true},
    {Op::sinh, "sinh", true},
    {Op::cosh, "cosh", true},
    {Op::tanh, "tanh", true},
    {Op::asinh, "asinh", true},
    {Op::acosh, "acosh", true},
    {Op::atanh, "atanh", true},
    {Op::sigmoid, "vt_sigmoid", false},
    {Op::erf, "erf", true},
    {Op::erfc, "erfc", true},
    {Op::erf_inv, "erfinv", true},
    {Op::popcount, "vt_popcount", false},
    {Op::clz, "vt_clz", false},
    {Op::add, "vt_add", false},
    {Op::sub, "vt_sub", false},
    {Op::mul, "vt_mul", false},
    {Op::div, "vt_div", false},
    {Op::rem, "vt_rem", false},
    {Op::pow, "vt_pow", false},
    {Op::max, "vt_max", false},
    {Op::min, "vt_min", false},
    {Op::atan2, "atan2", true},
    {Op::shift_left, "vt_shl", false},
    {Op::shift_right_logical, "vt_shr", false},
    {Op::shift_right_arithmetic, "vt_sar", false},
    {Op::threefry, "vt_threefry", false},
};
const Named* find(Op op) {
  for (const Named& n : named)
    if (n.op == op) return &n;
  return nullptr;
}

const char* comparison(Op op) {
  switch (op) {
    case Op::eq: return "==";
    case Op::ne: return "!=";
    case Op::lt: return "<";
    case Op::le: return "<=";
    case Op::gt: return ">";
    case Op::ge: return ">=";
    case Op::and_: return "&";
    case Op::or_: return "|";
    case Op::xor_: return "^";
    default: return nullptr;
  }
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

bool has_element_source(Op op) { return is_elementwise(op) && op_rows[op].way == Way::kernel; }

std::string element(Op op, DType dtype, const ParamsRef& params, std::span<const Operand> v) {
  using namespace element_text;
  const DType d = v[0].dtype;
  const bool real = is_float(d);
  if (const char* sign = comparison(op)) return formatted("({} {} {})", v[0].text, sign, v[1].text);
  if (const Named* n = find(op)) {
    // bool and integers of some bits are added and multiplied as the interpreter does, in their own
    // type.
    if (!n->of_cuda || real) return rounded(dtype, call(n->name, d, v, n->of_cuda));
  }
  // gelu's, which is not to wait for f64
  if (op == Op::ndtr && d != DType::f64) return rounded(dtype, call("normcdf", d, v, true));
  if ((op >= Op::digamma && op <= Op::bessel_y1) || op == Op::zeta)
    return through_f64(("vt_special::" + std::string(name_of(op))).c_str(), dtype, v);
  switch (op) {
    case Op::lgamma: return through_f64("lgamma", dtype, v);
    case Op::rsqrt:
      return rounded(dtype, formatted("({} / sqrt{}({}))", number(d, 1), d == DType::f64 ? "" : "f",
                                      v[0].text));
    case Op::floor: return real ? call("floor", d, v, true) : v[0].text;
    case Op::ceil: return real ? call("ceil", d, v, true) : v[0].text;
    case Op::round: return real ? call("rint", d, v, true) : v[0].text;
    case Op::trunc: return real ? call("trunc", d, v, true) : v[0].text;
    case Op::is_finite: return real ? formatted("(vt_abs({}) < VT_INF)", v[0].text) : "true";
    case Op::is_nan: return formatted("vt_nan({})", v[0].text);
    case Op::is_inf: return real ? formatted("(vt_abs({}) == VT_INF)", v[0].text) : "false";
    case Op::not_:
      return is_bool(d) ? "(!" + v[0].text + ")"
                        : formatted("({})~{}", register_type(d), v[0].text);
    case Op::convert: return converted(v[0], dtype);
    case Op::bitcast:
      if (is_bool(d) || is_bool(dtype)) return converted(v[0], dtype);
      return from_bits(bits(v[0]), dtype);
    case Op::stop_gradient: return v[0].text;
    case Op::select: return formatted("({} ? {} : {})", v[0].text, v[1].text, v[2].text);
    case Op::reduce_precision: {
      const auto& p = params->as<PrecisionParams>();
      return rounded(dtype, formatted("vt_precision{}({}, {}, {})", d == DType::f16 ? "_f16" : "",
                                      v[0].text, p.mantissa_bits, p.exponent_bits));
    }
    case Op::nextafter:
      if (d == DType::f16) return formatted("vt_next_f16({}, {})", v[0].text, v[1].text);
      if (d == DType::bf16) return formatted("vt_next_bf16({}, {})", v[0].text, v[1].text);
      return call("nextafter", d, v, true);
    case Op::integer_pow: {
      const int n = params->as<IntegerPowParams>().exponent;
      const auto size = static_cast<unsigned>(n < 0 ? -static_cast<long>(n) : n);
      // 1 and −1 have integer inverses; everything else gives 0, as integer division does.
      if (n < 0 && is_signed_int(d))
        return formatted("vt_pow<{0}>({1}, ({0}){2})", register_type(d), v[0].text,
                         n % 2 ? -1 : -2);
      if (n < 0 && !real) return formatted("({} == 1)", v[0].text);
      // Squaring adds up errors: beyond a few steps pow is as near as one rounding.
      if (real && size > 16)
        return converted({formatted("pow((f64){}, {}.0)", v[0].text, n), DType::f64}, dtype);
      return rounded(
          dtype, formatted("vt_{}({}, {}u)", n < 0 ? "inverse_power" : "power", v[0].text, size));
    }
    default:
      throw Error(ErrorKind::backend,
                  "vt: internal fault: no CUDA text for " + std::string(name_of(op)));
  }
}

}  // namespace vt::detail::cuda
