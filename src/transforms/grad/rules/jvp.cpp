// The table of jvp rules, with the element-wise ones.
#include "../jvp.hpp"

#include <limits>
#include <numbers>

#include "../build.hpp"

namespace vt::detail {

namespace jvp_rules {

using grad_build::Val;
using namespace grad_build;

inline Val primal(const JvpCall& c, std::size_t i = 0) { return c.x[i]; }
inline Val tangent(const JvpCall& c, std::size_t i = 0) { return c.t[i]; }
inline Val result(const JvpCall& c) { return c.y; }

inline Tensor add(const JvpCall& c) { return sum_of(c.t[0], c.t[1]); }

inline Tensor sub(const JvpCall& c) {
  if (!c.has(1)) return c.t[0];
  return c.has(0) ? tangent(c, 0) - tangent(c, 1) : -tangent(c, 1);
}

inline Tensor mul(const JvpCall& c) {
  Tensor sum;
  if (c.has(0)) sum = tangent(c, 0) * primal(c, 1);
  if (c.has(1)) sum = sum_of(sum, tangent(c, 1) * primal(c, 0));
  return sum;
}

// One reciprocal serves all directions: a division takes as long as ten products. Reciprocals of
// 16-bit floats overflow too early.
inline Tensor div(const JvpCall& c) {
  const Val divisor = primal(c, 1);
  const bool wide = size_of(real_dtype(divisor.t.dtype())) > 2;
  const Val inverse = wide ? 1.0 / divisor : divisor;
  const auto divided = [&](const Val& x) { return wide ? x * inverse : x / inverse; };
  Tensor sum;
  if (c.has(0)) sum = divided(tangent(c, 0));
  if (c.has(1)) sum = sum_of(sum, tangent(c, 1) * -divided(result(c)));
  return sum;
}

// x − n·y with n = trunc(x / y), which is got back from the result: x / y itself may round up to
// the next integer.
inline Tensor rem(const JvpCall& c) {
  Tensor sum = c.t[0];
  if (c.has(1)) {
    const Val n = unary(Op::round, (primal(c, 0) - result(c)) / primal(c, 1));
    sum = sum_of(sum, tangent(c, 1) * -n);
  }
  return sum;
}

/// n · x^(n − 1) for a known n.
inline Tensor pow_slope(const Val& x, double n) {
  const DType d = x.t.dtype();
  if (n == 2) return 2.0 * x;
  return n * Val(binary(Op::pow, x, scalar(d, n - 1)));
}

// 0 · 0⁻¹ and log 0 are kept out: the derivative of x⁰ at 0 is 0, and so is that of 0^y for y > 0.
inline Tensor pow(const JvpCall& c) {
  if (const Node* exponent = node_of(c.x[1]);
      exponent->op == Op::full && !c.has(1) && !is_complex(c.y.dtype())) {
    const double n = exponent->params->as<FullParams>().value.to_double();
    return n == 0 ? Tensor() : n == 1 ? c.t[0] : Tensor(tangent(c) * Val(pow_slope(primal(c), n)));
  }
  const Val x = primal(c, 0), y = primal(c, 1);
  const Tensor zero = scalar(c.y.dtype(), 0), one = scalar(c.y.dtype(), 1);
  const Tensor x_is_zero = binary(Op::eq, x, zero);
  Tensor sum;
  if (c.has(0)) {
    const Tensor both_zero = binary(Op::and_, x_is_zero, binary(Op::eq, y, zero));
    const Val exponent = choose(both_zero, one, y - 1.0);
    sum = tangent(c, 0) * (y * Val(binary(Op::pow, x, exponent)));
  }
  if (c.has(1))
    sum = sum_of(sum, tangent(c, 1) * (Val(unary(Op::log, choose(x_is_zero, one, x))) * result(c)));
  return sum;
}

// The tangent of the greater operand; equal ones share it.
inline Tensor greater(const JvpCall& c, Op wins) {
  const DType d = c.y.dtype();
  const Tensor one = scalar(d, 1), half = scalar(d, 0.5), zero = scalar(d, 0);
  const Tensor tie = choose(binary(Op::eq, c.x[0], c.x[1]), half, zero);
  Tensor sum;
  if (c.has(0)) sum = tangent(c, 0) * Val(choose(binary(wins, c.x[0], c.x[1]), one, tie));
  if (c.has(1))
    sum = sum_of(sum, tangent(c, 1) * Val(choose(binary(wins, c.x[1], c.x[0]), one, tie)));
  return sum;
}

/// What to divide by before squaring: the greater of two lengths, as squares of the operands
/// themselves may overflow or vanish. The slopes that use it come out the same whatever it is, so
/// that it is a constant to further derivatives. 1 where the length is infinite.
inline Val scale_of(const Tensor& a, const Tensor& b) {
  const Tensor length = binary(Op::max, unary(Op::abs, a), unary(Op::abs, b));
  return unary(Op::stop_gradient,
               choose(unary(Op::is_finite, length), length, scalar(aval_of(length).dtype, 1)));
}

// x / (x² + y²) and −y / (x² + y²)
inline Tensor atan2(const JvpCall& c) {
  const Val scale = scale_of(c.x[0], c.x[1]), y = primal(c, 0) / scale, x = primal(c, 1) / scale;
  const Val r2 = (x * x + y * y) * scale;
  Tensor sum;
  if (c.has(0)) sum = tangent(c, 0) * (x / r2);
  if (c.has(1)) sum = sum_of(sum, tangent(c, 1) * -(y / r2));
  return sum;
}

inline Tensor select(const JvpCall& c) {
  const Tensor zero = scalar(c.y.dtype(), 0);
  return emit(Op::select, c.equation.params,
              {c.x[0], c.has(1) ? c.t[1] : zero, c.has(2) ? c.t[2] : zero}, {});
}

inline Tensor integer_pow(const JvpCall& c) {
  const int n = c.as<IntegerPowParams>().exponent;
  if (n == 0) return {};
  if (n == 1) return c.t[0];
  if (n == 2) return tangent(c) * (2.0 * primal(c));
  // The least exponent has none below it.
  const Val lower =
      n == std::numeric_limits<int>::min() ? result(c) / primal(c) : Val(power(c.x[0], n - 1));
  return tangent(c) * (static_cast<double>(n) * lower);
}

/// Of a complex number the part of the tangent along it.
inline Tensor abs(const JvpCall& c) {
  const Val direction = unary(Op::sign, c.x[0]);
  if (!is_complex(c.x[0].dtype())) return tangent(c) * direction;
  return unary(Op::real, tangent(c) * Val(unary(Op::conj, direction)));
}

/// Of a complex number the part of the tangent across it, over its length; 0 at 0.
inline Tensor sign(const JvpCall& c) {
  if (!is_complex(c.y.dtype())) return {};
  const DType part = real_dtype(c.y.dtype());
  const Val length = unary(Op::abs, c.x[0]),
            across = unary(Op::imag, tangent(c) * Val(unary(Op::conj, c.y)));
  const Tensor zero = scalar(part, 0), at_zero = binary(Op::eq, length, zero);
  const Val turn = across / Val(choose(at_zero, scalar(part, 1), length));
  return result(c) * Val(binary(Op::complex, zero, turn));
}

/// 1 − x², +0 at ±1. On the cuts of asin and acosh, |x| > 1 of complex numbers, the sign of the
/// zero beside x tells the side, which 1 − x and x + 1 would lose: 0 − 0 and −0 + 0 are +0. `x −
/// −1` keeps it.
inline Val one_minus_square(const JvpCall& c) {
  if (!is_complex(c.y.dtype())) return (1.0 - primal(c)) * (1.0 + primal(c));
  return -((primal(c) - 1.0) * (primal(c) - -1.0));
}

inline constexpr double ln2 = std::numbers::ln2, inv_sqrtpi = std::numbers::inv_sqrtpi;

inline Tensor neg(const JvpCall& c) { return -tangent(c); }
inline Tensor exp(const JvpCall& c) { return tangent(c) * result(c); }
inline Tensor exp2(const JvpCall& c) { return tangent(c) * (ln2 * result(c)); }
inline Tensor expm1(const JvpCall& c) { return tangent(c) * (result(c) + 1.0); }
inline Tensor log(const JvpCall& c) { return tangent(c) / primal(c); }
inline Tensor log1p(const JvpCall& c) { return tangent(c) / (1.0 + primal(c)); }
inline Tensor log2(const JvpCall& c) { return tangent(c) / (ln2 * primal(c)); }
inline Tensor sqrt(const JvpCall& c) { return tangent(c) / (2.0 * result(c)); }
inline Tensor rsqrt(const JvpCall& c) { return tangent(c) * (-0.5 * (result(c) / primal(c))); }
inline Tensor cbrt(const JvpCall& c) { return tangent(c) / (3.0 * (result(c) * result(c))); }
inline Tensor sin(const JvpCall& c) { return tangent(c) * cos_of(primal(c)); }
inline Tensor cos(const JvpCall& c) { return tangent(c) * -sin_of(primal(c)); }
inline Tensor tan(const JvpCall& c) { return tangent(c) * (1.0 + result(c) * result(c)); }
inline Tensor asin(const JvpCall& c) { return tangent(c) * rsqrt_of(one_minus_square(c)); }
inline Tensor acos(const JvpCall& c) { return tangent(c) * -rsqrt_of(one_minus_square(c)); }
inline Tensor atan(const JvpCall& c) { return tangent(c) / (1.0 + primal(c) * primal(c)); }
inline Tensor sinh(const JvpCall& c) { return tangent(c) * Val(unary(Op::cosh, c.x[0])); }
inline Tensor cosh(const JvpCall& c) { return tangent(c) * Val(unary(Op::sinh, c.x[0])); }
inline Tensor tanh(const JvpCall& c) { return tangent(c) * (1.0 - result(c) * result(c)); }
inline Tensor asinh(const JvpCall& c) {
  if (is_complex(c.x[0].dtype())) return tangent(c) * rsqrt_of(primal(c) * primal(c) - -1.0);
  const Val scale = scale_of(c.x[0], scalar(c.y.dtype(), 1)), x = primal(c) / scale,
            one = 1.0 / scale;
  return tangent(c) * (rsqrt_of(x * x + one * one) * one);
}
inline Tensor acosh(const JvpCall& c) {
  const Val below = primal(c) - 1.0, above = primal(c) - -1.0;
  // The product of two complex roots is not the root of the product: in the left half plane it is
  // the negative of it.
  if (is_complex(c.x[0].dtype())) return tangent(c) * (rsqrt_of(below) * rsqrt_of(above));
  const Val scale = scale_of(c.x[0], scalar(c.y.dtype(), 1));
  return tangent(c) * (rsqrt_of(below / scale * (above / scale)) / scale);
}
inline Tensor atanh(const JvpCall& c) {
  return tangent(c) / ((1.0 - primal(c)) * (1.0 + primal(c)));
}
/// Not times 1 − the result, of which nothing is left in the right tail. Compiled code computes one
/// exponential and one quotient for both.
inline Tensor sigmoid(const JvpCall& c) {
  return tangent(c) * (result(c) * Val(unary(Op::sigmoid, -primal(c))));
}
/// exp(−factor x²). The exponential magnifies what x² was rounded by. In f64, where that may be
/// hundreds of units in the last place, it is made good; 16-bit floats are squared in f32.
inline Val gaussian(const Tensor& operand, double factor) {
  const DType own = operand.dtype();
  const Val x = convert_to(operand, size_of(own) < 4 ? DType::f32 : own), square = x * x,
            plain = exp_of(-factor * square);
  if (own != DType::f64) return convert_to(plain, own);
  const Val high = emit(Op::reduce_precision, make_params(PrecisionParams{11, 25}), {x.t}, {}),
            low = x - high;
  const Val rest = (high * high - square) + low * (2.0 * high + low);
  const Val lost = unary(Op::stop_gradient,
                         choose(binary(Op::lt, square, scalar(own, 1e6)), rest, scalar(own, 0)));
  return plain * (1.0 - factor * lost);
}
inline Tensor erf(const JvpCall& c) { return tangent(c) * (2 * inv_sqrtpi * gaussian(c.x[0], 1)); }
inline Tensor erfc(const JvpCall& c) {
  return tangent(c) * (-2 * inv_sqrtpi * gaussian(c.x[0], 1));
}
inline Tensor erf_inv(const JvpCall& c) {
  return tangent(c) * (0.5 / inv_sqrtpi * exp_of(result(c) * result(c)));
}
inline Tensor lgamma(const JvpCall& c) { return tangent(c) * Val(unary(Op::digamma, c.x[0])); }
inline Tensor digamma(const JvpCall& c) { return tangent(c) * Val(trigamma(c.x[0])); }
inline Tensor gamma(const JvpCall& c) {
  return tangent(c) * (result(c) * Val(unary(Op::digamma, c.x[0])));
}

/// The slopes of dawsn and erfcx, 1 − 2xy and 2xy − 2/√π, are what is left of two numbers that
/// agree in ever more digits: beyond 8 it is summed instead. `sign` −1: Σ (2k + 1)!! u^(k + 1) with
/// u = 1 / (2x²), 1: with alternating signs. The terms left out are below 1e-16 of the sum.
inline Val asymptotic_slope(const JvpCall& c, const Tensor& is_far, double sign) {
  const Tensor one = scalar(c.y.dtype(), 1);
  const Val far = choose(is_far, c.x[0], scalar(c.y.dtype(), 8)), u = 0.5 / far / far;
  Val sum = one;
  for (int k = 18; k > 0; --k) sum = 1.0 - (sign * (2 * k + 1)) * (u * sum);
  return u * sum;
}
/// Either formula where it holds; the other one sees operands at which its own derivatives are
/// finite.
inline Tensor slope_near_and_far(const JvpCall& c, const Val& distance, double factor,
                                 double sign) {
  const Tensor is_far = binary(Op::gt, distance, scalar(c.y.dtype(), 8));
  const Val near = choose(is_far, scalar(c.y.dtype(), 0), c.x[0]);
  const Val slope = (2.0 * sign) * (near * result(c)) - sign * factor;
  return tangent(c) * Val(choose(is_far, -factor * asymptotic_slope(c, is_far, sign), slope));
}
inline Tensor erfcx(const JvpCall& c) {
  return slope_near_and_far(c, primal(c), 2 * inv_sqrtpi, 1);
}
inline Tensor dawsn(const JvpCall& c) {
  return slope_near_and_far(c, unary(Op::abs, c.x[0]), 1, -1);
}

/// −½√π exp(y²), of which y's last digit would be magnified: exp(−y²) is q / erfcx(y). The sides of
/// 1 are told apart without |y|, so that either form's derivatives are the function's at 1 too.
inline Tensor erfc_inv(const JvpCall& c) {
  const Tensor one = scalar(c.y.dtype(), 1), zero = scalar(c.y.dtype(), 0);
  const Tensor below = binary(Op::lt, c.x[0], one);
  const Val tail = choose(below, c.x[0], 2.0 - primal(c)),
            scaled = unary(Op::erfcx, choose(below, c.y, -result(c)));
  return tangent(c) *
         (-0.5 / inv_sqrtpi * Val(choose(binary(Op::eq, tail, zero), one, scaled)) / tail);
}
inline Tensor ndtr(const JvpCall& c) {
  return tangent(c) * (inv_sqrtpi / std::numbers::sqrt2 * gaussian(c.x[0], 0.5));
}
/// The normal density over the distribution. On the left both vanish, and their quotient is one of
/// erfcx, which overflows on the right. Each form sees 0 in place of the other's operands, so that
/// derivatives of the one that is not chosen are finite too.
inline Tensor log_ndtr(const JvpCall& c) {
  const Tensor zero = scalar(c.y.dtype(), 0), is_left = binary(Op::lt, c.x[0], zero);
  const Val left = choose(is_left, c.x[0], zero), right = choose(is_left, zero, c.x[0]);
  const Val from_erfcx =
      std::numbers::sqrt2 * inv_sqrtpi / Val(unary(Op::erfcx, (-1 / std::numbers::sqrt2) * left));
  const Val from_ndtr =
      inv_sqrtpi / std::numbers::sqrt2 * gaussian(right, 0.5) / Val(unary(Op::ndtr, right));
  return tangent(c) * Val(choose(is_left, from_erfcx, from_ndtr));
}
inline Tensor expi(const JvpCall& c) { return tangent(c) * (exp_of(primal(c)) / primal(c)); }
inline Tensor fresnel_sin(const JvpCall& c) {
  return tangent(c) * sin_of(std::numbers::pi / 2 * (primal(c) * primal(c)));
}
inline Tensor fresnel_cos(const JvpCall& c) {
  return tangent(c) * cos_of(std::numbers::pi / 2 * (primal(c) * primal(c)));
}
inline Tensor bessel_k0e(const JvpCall& c) {
  return tangent(c) * (result(c) - Val(unary(Op::bessel_k1e, c.x[0])));
}
inline Tensor bessel_k1e(const JvpCall& c) {
  return tangent(c) * (result(c) - Val(unary(Op::bessel_k0e, c.x[0])) - result(c) / primal(c));
}
inline Tensor bessel_j0(const JvpCall& c) {
  return tangent(c) * -Val(unary(Op::bessel_j1, c.x[0]));
}
inline Tensor bessel_y0(const JvpCall& c) {
  return tangent(c) * -Val(unary(Op::bessel_y1, c.x[0]));
}
inline Tensor bessel_y1(const JvpCall& c) {
  return tangent(c) * (Val(unary(Op::bessel_y0, c.x[0])) - result(c) / primal(c));
}
/// A unit in the last place is a constant.
inline Tensor nextafter(const JvpCall& c) { return c.t[0]; }
inline Tensor convert(const JvpCall& c) { return convert_to(c.t[0], c.y.dtype()); }
inline Tensor max(const JvpCall& c) { return greater(c, Op::gt); }
inline Tensor min(const JvpCall& c) { return greater(c, Op::lt); }

/// Fused regions are formed when a program is compiled, and nothing transforms that Graph any more.
inline void not_transformed(const JvpCall& c, std::vector<Tensor>&, std::vector<Tensor>&) {
  fail(ErrorKind::transform, "vt: internal: the derivative of a fused region", c.equation.where);
}

constexpr std::optional<JvpRule> rule_by_linearity(const OpInfo& op) {
  switch (op.linearity) {
    case Linearity::zero: return zero_tangent;
    case Linearity::linear: return op.arity == 1 ? same_op : with_zeros;
    case Linearity::first: return same_op;
    case Linearity::bilinear: return bilinear;
    default: return std::nullopt;
  }
}
inline constexpr auto own_rules = rule_table<JvpRule>({
    {Op::neg, neg},
    {Op::abs, abs},
    {Op::sign, sign},
    {Op::exp, exp},
    {Op::exp2, exp2},
    {Op::expm1, expm1},
    {Op::log, log},
    {Op::log1p, log1p},
    {Op::log2, log2},
    {Op::sqrt, sqrt},
    {Op::rsqrt, rsqrt},
    {Op::cbrt, cbrt},
    {Op::sin, sin},
    {Op::cos, cos},
    {Op::tan, tan},
    {Op::asin, asin},
    {Op::acos, acos},
    {Op::atan, atan},
    {Op::sinh, sinh},
    {Op::cosh, cosh},
    {Op::tanh, tanh},
    {Op::asinh, asinh},
    {Op::acosh, acosh},
    {Op::atanh, atanh},
    {Op::sigmoid, sigmoid},
    {Op::erf, erf},
    {Op::erfc, erfc},
    {Op::erf_inv, erf_inv},
    {Op::lgamma, lgamma},
    {Op::digamma, digamma},
    {Op::gamma, gamma},
    {Op::erfcx, erfcx},
    {Op::erfc_inv, erfc_inv},
    {Op::ndtr, ndtr},
    {Op::log_ndtr, log_ndtr},
    {Op::dawsn, dawsn},
    {Op::expi, expi},
    {Op::spence, spence},
    {Op::fresnel_sin, fresnel_sin},
    {Op::fresnel_cos, fresnel_cos},
    {Op::bessel_i0e, bessel_i0e},
    {Op::bessel_i1e, bessel_i1e},
    {Op::bessel_k0e, bessel_k0e},
    {Op::bessel_k1e, bessel_k1e},
    {Op::bessel_j0, bessel_j0},
    {Op::bessel_j1, bessel_j1},
    {Op::bessel_y0, bessel_y0},
    {Op::bessel_y1, bessel_y1},
    {Op::integer_pow, integer_pow},
    {Op::convert, convert},
    {Op::add, add},
    {Op::sub, sub},
    {Op::mul, mul},
    {Op::div, div},
    {Op::rem, rem},
    {Op::pow, pow},
    {Op::max, max},
    {Op::min, min},
    {Op::atan2, atan2},
    {Op::nextafter, nextafter},
    {Op::zeta, zeta},
    {Op::select, select},
    {Op::reduce_prod, reduce_prod},
    {Op::reduce_max, reduce_extremum},
    {Op::reduce_min, reduce_extremum},
    {Op::reduce, reduce},
    {Op::cumprod, cumprod},
    {Op::cummax, cum_extremum},
    {Op::cummin, cum_extremum},
    {Op::cumlogsumexp, cumlogsumexp},
    {Op::sort, sort},
    {Op::scatter_mul, scatter_mul},
    {Op::scatter_min, scatter_extremum},
    {Op::scatter_max, scatter_extremum},
    {Op::rows, tangent_rows},
    {Op::rows_add, rows_add},
    {Op::cholesky, cholesky},
    {Op::triangular_solve, triangular_solve},
    {Op::lu, lu},
    {Op::solve, solve},
    {Op::qr, qr},
    {Op::eigh, eigh},
    {Op::svd, svd},
    {Op::eig, eig},
    {Op::tridiagonal_solve, tridiagonal_solve},
    {Op::pmax, lanes_extremum},
    {Op::pmin, lanes_extremum},
    {Op::call, call},
    {Op::batched_call, batched_call},
    {Op::recursive_call, recursive_call},
    {Op::custom_jvp, custom_jvp},
    {Op::custom_vjp, custom_vjp},
    {Op::custom_vmap, inlined},
    {Op::checkpoint, checkpoint},
    {Op::cond, control},
    {Op::while_, control},
    {Op::fused_region, not_transformed},
    {Op::scan, control},
    {Op::callback, callback},
});
inline constexpr auto table = with_defaults(own_rules, rule_by_linearity);
static_assert(RuleMissingFor<first_without_rule(table)>::ok);

const JvpRule& rule_of(Op op) { return table[op]; }

}  // namespace jvp_rules

}  // namespace vt::detail
