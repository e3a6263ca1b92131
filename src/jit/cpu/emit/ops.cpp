// Element-wise ops on registers: LLVM code for every element-wise op of the op table.
#include "nest.hpp"

#if VT_HAS_LLVM_HEADERS

#include "../../../trace/base/scalar_math.hpp"
#include "../math/math.hpp"

namespace vt::detail::cpu {

namespace nest_ops {

using Operands = std::span<const Value>;

// x^n by squaring, n > 0.
Value power_by_squaring(IrBuilder& b, Value x, unsigned n) {
  Value result{};
  for (; n; n >>= 1) {
    if (n & 1) result = result ? b.mul(result, x) : x;
    if (n > 1) x = b.mul(x, x);
  }
  return result;
}

// Floats. The inverse of a power is made of that of half the exponent: the whole power may be
// beyond the range where its inverse is still a subnormal number. Beyond a few squarings, whose
// errors add up, they go on in f64, which has digits to spare for shorter floats; f64 itself takes
// along what each is rounded by.
Value float_power(IrBuilder& b, Value x, int exponent) {
  const DType d = x.dtype;
  constexpr unsigned most_plain = 16;
  const unsigned n =
      exponent < 0 ? 0U - static_cast<unsigned>(exponent) : static_cast<unsigned>(exponent);
  if (n == 0) return b.real(d, 1, x.simd_lanes);
  if (n > most_plain) {
    const Value base = b.convert(x, DType::f64);
    if (d == DType::f64 || n >= 1U << 20)
      return b.convert(math::long_power(b, base, n, exponent < 0), d);
    return b.convert(
        power_by_squaring(b, exponent < 0 ? b.div(b.real(DType::f64, 1, x.simd_lanes), base) : base,
                          n),
        d);
  }
  const Value wide = size_of(d) == 2 ? b.convert(x, DType::f32) : x;
  if (exponent > 0) return b.convert(power_by_squaring(b, wide, n), d);
  const Value one = b.real(wide.dtype, 1, x.simd_lanes),
              inverse = n == 1 || n % 2 ? b.div(one, wide) : Value{};
  if (n == 1) return b.convert(inverse, d);
  const Value root =
      n / 2 == 1 && inverse ? inverse : b.div(one, power_by_squaring(b, wide, n / 2));
  const Value square = b.mul(root, root);
  return b.convert(inverse ? b.mul(square, inverse) : square, d);
}

Value integer_power(IrBuilder& b, Value x, int exponent) {
  const DType d = x.dtype;
  if (is_float(d)) return float_power(b, x, exponent);
  if (exponent < 0) {
    // 1 and −1 have integer inverses; everything else gives 0, as integer division does.
    const Value one = b.integer(d, 1, x.simd_lanes), zero = b.integer(d, 0, x.simd_lanes);
    Value result = b.select(b.compare(Compare::eq, x, one), one, zero);
    if (is_signed_int(d)) {
      const Value minus_one = b.integer(d, -1, x.simd_lanes);
      result =
          b.select(b.compare(Compare::eq, x, minus_one), exponent % 2 ? minus_one : one, result);
    }
    return result;
  }
  return exponent == 0 ? b.integer(d, 1, x.simd_lanes)
                       : power_by_squaring(b, x, static_cast<unsigned>(exponent));
}

// Iterations to fewer exponent and mantissa bits, to nearest even, as XLA's ReducePrecision.
Value reduce_precision(IrBuilder& b, Value x, const PrecisionParams& p) {
  // f16 in its own bits: its subnormal numbers are no such in f32. bf16 is f32 without the last
  // bits.
  const bool wide = x.dtype == DType::f64, half = x.dtype == DType::f16;
  const DType d = wide || half ? x.dtype : DType::f32, bits = wide   ? DType::u64
                                                              : half ? DType::u16
                                                                     : DType::u32;
  const int mantissa = wide   ? 52
                       : half ? 10
                              : 23,
            exponent = wide   ? 11
                       : half ? 5
                              : 8,
            simd_lanes = x.simd_lanes;
  Value u = b.bitcast(b.convert(x, d), bits);
  const auto number = [&](std::uint64_t v) {
    return b.integer(bits, static_cast<std::int64_t>(v), simd_lanes);
  };
  const std::uint64_t sign_bit = std::uint64_t{1} << (mantissa + exponent);
  const Value sign = b.bit_and(u, number(sign_bit));
  if (p.mantissa_bits < mantissa) {
    const int drop = mantissa - p.mantissa_bits;
    const Value last = b.bit_and(b.shift_right_logical(u, drop), number(1));
    u = b.add(u, b.add(last, number((std::uint64_t{1} << (drop - 1)) - 1)));
    u = b.bit_and(u, number(~((std::uint64_t{1} << drop) - 1)));
  }
  if (p.exponent_bits < exponent) {
    const std::uint64_t bias = (std::uint64_t{1} << (exponent - 1)) - 1;
    const std::uint64_t reduced_bias = (std::uint64_t{1} << (p.exponent_bits - 1)) - 1;
    const Value magnitude = b.bit_and(u, number(sign_bit - 1));
    const std::uint64_t infinity = ((std::uint64_t{1} << exponent) - 1) << mantissa;
    const Value field = b.bit_and(magnitude, number(infinity));
    const Value too_large =
        b.compare(Compare::gt, field, number((bias + reduced_bias) << mantissa));
    const Value too_small =
        b.compare(Compare::le, field, number((bias - reduced_bias) << mantissa));
    u = b.select(too_large, b.bit_or(sign, number(infinity)), u);
    u = b.select(too_small, sign, u);
  }
  const Value rounded = b.convert(b.bitcast(u, d), x.dtype);
  return b.select(b.is_nan(x), x, rounded);
}

Value integer_pow_of_integers(IrBuilder& b, Value x, Value y) {
  // Square and multiply over the exponent's bits; enough iterations for the widest exponent. A
  // negative one is handled as in integer_power.
  const DType d = x.dtype;
  const Value one = b.integer(d, 1, x.simd_lanes), zero = b.integer(d, 0, x.simd_lanes);
  const int bits = is_bool(d) ? 1 : static_cast<int>(size_of(d)) * 8;
  Value result = one, power = x, left = y;
  for (int i = 0; i < bits; ++i) {
    const Value odd = b.compare(Compare::ne, b.bit_and(left, one), zero);
    result = b.select(odd, b.mul(result, power), result);
    power = b.mul(power, power);
    if (!is_bool(d)) left = b.shift_right_logical(left, 1);
  }
  if (!is_signed_int(d)) return result;
  const Value minus_one = b.integer(d, -1, x.simd_lanes);
  const Value odd = b.compare(Compare::ne, b.bit_and(y, one), zero);
  Value inverse = b.select(b.compare(Compare::eq, x, one), one, zero);
  inverse = b.select(b.compare(Compare::eq, x, minus_one), b.select(odd, minus_one, one), inverse);
  return b.select(b.compare(Compare::lt, y, zero), inverse, result);
}

// scalar_math::threefry on SIMD lanes.
Value threefry(IrBuilder& b, Value key, Value counter) {
  const auto high = [&](Value v) { return b.convert(b.shift_right_logical(v, 32), DType::u32); };
  const auto low = [&](Value v) { return b.convert(v, DType::u32); };
  const auto number = [&](std::uint32_t n) { return b.integer(DType::u32, n, key.simd_lanes); };
  Value keys[3] = {high(key), low(key), {}};
  keys[2] = b.bit_xor(b.bit_xor(keys[0], keys[1]), number(scalar_math::threefry_parity));
  Value x = b.add(high(counter), keys[0]), y = b.add(low(counter), keys[1]);
  for (std::uint32_t block = 0; block < 5; ++block) {
    for (const int turn : scalar_math::threefry_turns[block % 2]) {
      x = b.add(x, y);
      y = b.bit_or(b.shift_left(y, turn), b.shift_right_logical(y, 32 - turn));
      y = b.bit_xor(y, x);
    }
    x = b.add(x, keys[(block + 1) % 3]);
    y = b.add(b.add(y, keys[(block + 2) % 3]), number(block + 1));
  }
  return b.bit_or(b.shift_left(b.convert(x, DType::u64), 32), b.convert(y, DType::u64));
}

}  // namespace nest_ops

Value emit_op(IrBuilder& b, Op op, DType dtype, const ParamsRef& params, std::span<const Value> v) {
  const auto with = [&]<class P>(const P*) -> const P& { return params->as<P>(); };
  const auto is_f = [&] { return is_float(v[0].dtype); };
  switch (op) {
    case Op::neg: return b.neg(v[0]);
    case Op::abs: return b.abs(v[0]);
    case Op::sign: return b.sign(v[0]);
    case Op::floor: return b.floor(v[0]);
    case Op::ceil: return b.ceil(v[0]);
    case Op::round: return b.round_even(v[0]);
    case Op::trunc: return b.trunc(v[0]);
    case Op::exp: return math::exp(b, v[0]);
    case Op::exp2: return math::exp2(b, v[0]);
    case Op::expm1: return math::expm1(b, v[0]);
    case Op::log: return math::log(b, v[0]);
    case Op::log1p: return math::log1p(b, v[0]);
    case Op::log2: return math::log2(b, v[0]);
    case Op::sqrt: return b.sqrt(v[0]);
    case Op::rsqrt: return math::rsqrt(b, v[0]);
    case Op::cbrt: return math::cbrt(b, v[0]);
    case Op::sin: return math::sin(b, v[0]);
    case Op::cos: return math::cos(b, v[0]);
    case Op::tan: return math::tan(b, v[0]);
    case Op::asin: return math::asin(b, v[0]);
    case Op::acos: return math::acos(b, v[0]);
    case Op::atan: return math::atan(b, v[0]);
    case Op::sinh: return math::sinh(b, v[0]);
    case Op::cosh: return math::cosh(b, v[0]);
    case Op::tanh: return math::tanh(b, v[0]);
    case Op::asinh: return math::asinh(b, v[0]);
    case Op::acosh: return math::acosh(b, v[0]);
    case Op::atanh: return math::atanh(b, v[0]);
    case Op::sigmoid: return math::sigmoid(b, v[0]);
    case Op::erf: return math::erf(b, v[0]);
    case Op::erfc: return math::erfc(b, v[0]);
    case Op::erf_inv: return math::erf_inv(b, v[0]);
    case Op::lgamma: return math::lgamma(b, v[0]);
    case Op::digamma: return math::digamma(b, v[0]);
    case Op::gamma: return math::gamma(b, v[0]);
    case Op::erfcx: return math::erfcx(b, v[0]);
    case Op::erfc_inv: return math::erfc_inv(b, v[0]);
    case Op::ndtr: return math::ndtr(b, v[0]);
    case Op::log_ndtr: return math::log_ndtr(b, v[0]);
    case Op::dawsn: return math::dawsn(b, v[0]);
    case Op::expi: return math::expi(b, v[0]);
    case Op::spence: return math::spence(b, v[0]);
    case Op::fresnel_sin: return math::fresnel_sin(b, v[0]);
    case Op::fresnel_cos: return math::fresnel_cos(b, v[0]);
    case Op::bessel_i0e: return math::bessel_i0e(b, v[0]);
    case Op::bessel_i1e: return math::bessel_i1e(b, v[0]);
    case Op::bessel_k0e: return math::bessel_k0e(b, v[0]);
    case Op::bessel_k1e: return math::bessel_k1e(b, v[0]);
    case Op::bessel_j0: return math::bessel_j0(b, v[0]);
    case Op::bessel_j1: return math::bessel_j1(b, v[0]);
    case Op::bessel_y0: return math::bessel_y0(b, v[0]);
    case Op::bessel_y1: return math::bessel_y1(b, v[0]);
    case Op::is_finite: return b.is_finite(v[0]);
    case Op::is_nan: return b.is_nan(v[0]);
    case Op::is_inf: return b.is_inf(v[0]);
    case Op::integer_pow:
      return nest_ops::integer_power(b, v[0],
                                     with(static_cast<const IntegerPowParams*>(nullptr)).exponent);
    case Op::not_: return b.bit_not(v[0]);
    case Op::popcount: return b.popcount(v[0]);
    case Op::clz: return b.clz(v[0]);
    case Op::convert: return b.convert(v[0], dtype);
    case Op::bitcast: return b.bitcast(v[0], dtype);
    case Op::reduce_precision:
      return nest_ops::reduce_precision(b, v[0],
                                        with(static_cast<const PrecisionParams*>(nullptr)));
    case Op::stop_gradient: return v[0];
    case Op::add: return b.add(v[0], v[1]);
    case Op::sub: return b.sub(v[0], v[1]);
    case Op::mul: return b.mul(v[0], v[1]);
    case Op::div: return b.div(v[0], v[1]);
    case Op::rem: return is_f() ? math::fmod(b, v[0], v[1]) : b.rem(v[0], v[1]);
    case Op::pow:
      return is_f() ? math::pow(b, v[0], v[1]) : nest_ops::integer_pow_of_integers(b, v[0], v[1]);
    case Op::max: return b.max(v[0], v[1]);
    case Op::min: return b.min(v[0], v[1]);
    case Op::atan2: return math::atan2(b, v[0], v[1]);
    case Op::nextafter: return math::nextafter(b, v[0], v[1]);
    case Op::zeta: return math::zeta(b, v[0], v[1]);
    case Op::eq: return b.compare(Compare::eq, v[0], v[1]);
    case Op::ne: return b.compare(Compare::ne, v[0], v[1]);
    case Op::lt: return b.compare(Compare::lt, v[0], v[1]);
    case Op::le: return b.compare(Compare::le, v[0], v[1]);
    case Op::gt: return b.compare(Compare::gt, v[0], v[1]);
    case Op::ge: return b.compare(Compare::ge, v[0], v[1]);
    case Op::and_: return b.bit_and(v[0], v[1]);
    case Op::or_: return b.bit_or(v[0], v[1]);
    case Op::xor_: return b.bit_xor(v[0], v[1]);
    case Op::shift_left: return b.shift_left(v[0], v[1]);
    case Op::shift_right_logical: return b.shift_right_logical(v[0], v[1]);
    case Op::shift_right_arithmetic: return b.shift_right_arithmetic(v[0], v[1]);
    case Op::threefry: return nest_ops::threefry(b, v[0], v[1]);
    case Op::select: return b.select(v[0], v[1], v[2]);
    default:
      throw Error(ErrorKind::backend,
                  "vt: internal fault: no CPU code for " + std::string(name_of(op)));
  }
}

// Functions of some dozen instructions. A kernel that uses one often calls it instead: LLVM's
// instruction selection takes most of a first call and grows faster than the block it looks at,
// while a call costs little beside such a function: 0 to 7 % of kernels that do nothing else, where
// four sines and four hyperbolic tangents took twice as long to compile.
Value emit_op(IrBuilder& b, Op op, DType dtype, const ParamsRef& params,
              std::span<const Value> operands, std::int64_t uses) {
  constexpr int most_inlined = 2;
  const bool is_long = op_weight(op, dtype) >= 15 && (is_float(dtype) || op == Op::threefry);
  if (!is_long || uses <= most_inlined) return emit_op(b, op, dtype, params, operands);
  const int simd_lanes = operands[0].simd_lanes;
  const std::string name =
      "vt." + std::string(name_of(op)) + "." + name_of(dtype) + "x" + std::to_string(simd_lanes);
  return b.call_helper(
      name, dtype, simd_lanes, {operands.begin(), operands.end()},
      [&](const Vec<Value>& arguments) { return emit_op(b, op, dtype, params, arguments); });
}

}  // namespace vt::detail::cpu

#endif  // VT_HAS_LLVM_HEADERS
