// Element-wise ops on registers: LLVM code for every element-wise op of the op table.
#include "nest.hpp"

#if VT_HAS_LLVM_HEADERS

#include <functional>
#include <type_traits>

#include "../../../trace/numerics/random_bits.hpp"
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

// random_bits::threefry on SIMD lanes.
Value threefry(IrBuilder& b, Value key, Value counter) {
  const auto high = [&](Value v) { return b.convert(b.shift_right_logical(v, 32), DType::u32); };
  const auto low = [&](Value v) { return b.convert(v, DType::u32); };
  const auto number = [&](std::uint32_t n) { return b.integer(DType::u32, n, key.simd_lanes); };
  Value keys[3] = {high(key), low(key), {}};
  keys[2] = b.bit_xor(b.bit_xor(keys[0], keys[1]), number(random_bits::parity));
  Value x = b.add(high(counter), keys[0]), y = b.add(low(counter), keys[1]);
  for (std::uint32_t block = 0; block < 5; ++block) {
    for (const int turn : random_bits::turns[block % 2]) {
      x = b.add(x, y);
      y = b.bit_or(b.shift_left(y, turn), b.shift_right_logical(y, 32 - turn));
      y = b.bit_xor(y, x);
    }
    x = b.add(x, keys[(block + 1) % 3]);
    y = b.add(b.add(y, keys[(block + 2) % 3]), number(block + 1));
  }
  return b.bit_or(b.shift_left(b.convert(x, DType::u64), 32), b.convert(y, DType::u64));
}

/// An element-wise op on the registers `v`, with a result of dtype `dtype`.
struct OpCall {
  IrBuilder& b;
  DType dtype;
  const ParamsRef& params;
  Operands v;
};
using OpCode = Value (*)(const OpCall&);

template <auto f>
Value of(const OpCall& c) {
  using F = decltype(f);
  if constexpr (std::is_invocable_v<F, IrBuilder&, Value>) return std::invoke(f, c.b, c.v[0]);
  else if constexpr (std::is_invocable_v<F, IrBuilder&, Value, Value>)
    return std::invoke(f, c.b, c.v[0], c.v[1]);
  else return std::invoke(f, c.b, c.v[0], c.v[1], c.v[2]);
}
/// Other ops take its place before there is a loop nest.
Value lowered(const OpCall&) {
  throw Error(ErrorKind::backend, "vt: internal fault: CPU code for an op that is lowered");
}

inline constexpr auto codes = rule_table<OpCode>({
    {Op::neg, of<&IrBuilder::neg>},
    {Op::abs, of<&IrBuilder::abs>},
    {Op::sign, of<&IrBuilder::sign>},
    {Op::floor, of<&IrBuilder::floor>},
    {Op::ceil, of<&IrBuilder::ceil>},
    {Op::round, of<&IrBuilder::round_even>},
    {Op::trunc, of<&IrBuilder::trunc>},
    {Op::exp, of<math::exp>},
    {Op::exp2, of<math::exp2>},
    {Op::expm1, of<math::expm1>},
    {Op::log, of<math::log>},
    {Op::log1p, of<math::log1p>},
    {Op::log2, of<math::log2>},
    {Op::sqrt, of<&IrBuilder::sqrt>},
    {Op::rsqrt, of<math::rsqrt>},
    {Op::cbrt, of<math::cbrt>},
    {Op::sin, of<math::sin>},
    {Op::cos, of<math::cos>},
    {Op::tan, of<math::tan>},
    {Op::asin, of<math::asin>},
    {Op::acos, of<math::acos>},
    {Op::atan, of<math::atan>},
    {Op::sinh, of<math::sinh>},
    {Op::cosh, of<math::cosh>},
    {Op::tanh, of<math::tanh>},
    {Op::asinh, of<math::asinh>},
    {Op::acosh, of<math::acosh>},
    {Op::atanh, of<math::atanh>},
    {Op::sigmoid, of<math::sigmoid>},
    {Op::erf, of<math::erf>},
    {Op::erfc, of<math::erfc>},
    {Op::erf_inv, of<math::erf_inv>},
    {Op::lgamma, of<math::lgamma>},
    {Op::digamma, of<math::digamma>},
    {Op::gamma, of<math::gamma>},
    {Op::erfcx, of<math::erfcx>},
    {Op::erfc_inv, of<math::erfc_inv>},
    {Op::ndtr, of<math::ndtr>},
    {Op::log_ndtr, of<math::log_ndtr>},
    {Op::dawsn, of<math::dawsn>},
    {Op::expi, of<math::expi>},
    {Op::spence, of<math::spence>},
    {Op::fresnel_sin, of<math::fresnel_sin>},
    {Op::fresnel_cos, of<math::fresnel_cos>},
    {Op::bessel_i0e, of<math::bessel_i0e>},
    {Op::bessel_i1e, of<math::bessel_i1e>},
    {Op::bessel_k0e, of<math::bessel_k0e>},
    {Op::bessel_k1e, of<math::bessel_k1e>},
    {Op::bessel_j0, of<math::bessel_j0>},
    {Op::bessel_j1, of<math::bessel_j1>},
    {Op::bessel_y0, of<math::bessel_y0>},
    {Op::bessel_y1, of<math::bessel_y1>},
    {Op::is_finite, of<&IrBuilder::is_finite>},
    {Op::is_nan, of<&IrBuilder::is_nan>},
    {Op::is_inf, of<&IrBuilder::is_inf>},
    {Op::integer_pow,
     [](const OpCall& c) {
       return integer_power(c.b, c.v[0], c.params->as<IntegerPowParams>().exponent);
     }},
    {Op::not_, of<&IrBuilder::bit_not>},
    {Op::popcount, of<&IrBuilder::popcount>},
    {Op::clz, of<&IrBuilder::clz>},
    {Op::convert, [](const OpCall& c) { return c.b.convert(c.v[0], c.dtype); }},
    {Op::bitcast, [](const OpCall& c) { return c.b.bitcast(c.v[0], c.dtype); }},
    {Op::reduce_precision,
     [](const OpCall& c) {
       return reduce_precision(c.b, c.v[0], c.params->as<PrecisionParams>());
     }},
    {Op::stop_gradient, [](const OpCall& c) { return c.v[0]; }},
    {Op::add, of<&IrBuilder::add>},
    {Op::sub, of<&IrBuilder::sub>},
    {Op::mul, of<&IrBuilder::mul>},
    {Op::div, of<&IrBuilder::div>},
    {Op::rem,
     [](const OpCall& c) {
       return is_float(c.v[0].dtype) ? math::fmod(c.b, c.v[0], c.v[1]) : c.b.rem(c.v[0], c.v[1]);
     }},
    {Op::pow,
     [](const OpCall& c) {
       return is_float(c.v[0].dtype) ? math::pow(c.b, c.v[0], c.v[1])
                                     : integer_pow_of_integers(c.b, c.v[0], c.v[1]);
     }},
    {Op::max, of<&IrBuilder::max>},
    {Op::min, of<&IrBuilder::min>},
    {Op::atan2, of<math::atan2>},
    {Op::nextafter, of<math::nextafter>},
    {Op::zeta, of<math::zeta>},
    {Op::eq, [](const OpCall& c) { return c.b.compare(Compare::eq, c.v[0], c.v[1]); }},
    {Op::ne, [](const OpCall& c) { return c.b.compare(Compare::ne, c.v[0], c.v[1]); }},
    {Op::lt, [](const OpCall& c) { return c.b.compare(Compare::lt, c.v[0], c.v[1]); }},
    {Op::le, [](const OpCall& c) { return c.b.compare(Compare::le, c.v[0], c.v[1]); }},
    {Op::gt, [](const OpCall& c) { return c.b.compare(Compare::gt, c.v[0], c.v[1]); }},
    {Op::ge, [](const OpCall& c) { return c.b.compare(Compare::ge, c.v[0], c.v[1]); }},
    {Op::and_, of<&IrBuilder::bit_and>},
    {Op::or_, of<&IrBuilder::bit_or>},
    {Op::xor_, of<&IrBuilder::bit_xor>},
    {Op::shift_left, [](const OpCall& c) { return c.b.shift_left(c.v[0], c.v[1]); }},
    {Op::shift_right_logical,
     [](const OpCall& c) { return c.b.shift_right_logical(c.v[0], c.v[1]); }},
    {Op::shift_right_arithmetic,
     [](const OpCall& c) { return c.b.shift_right_arithmetic(c.v[0], c.v[1]); }},
    {Op::threefry, of<threefry>},
    {Op::select, of<&IrBuilder::select>},
    {Op::real, lowered},
    {Op::imag, lowered},
    {Op::conj, lowered},
    {Op::complex, lowered},
    {Op::meeting, lowered},
});
static_assert(RuleMissingFor<first_elementwise_without_rule(codes)>::ok);

}  // namespace nest_ops

Value emit_op(IrBuilder& b, Op op, DType dtype, const ParamsRef& params, std::span<const Value> v) {
  return nest_ops::codes[op]({b, dtype, params, v});
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
