// Complex functions in real arithmetic, with the branch cuts and most special values of C99's Annex G. Errors are small next to the
// length of the result, not next to each part.
// Inverse functions after W. Kahan, "Branch cuts for complex elementary functions, or much ado about nothing's sign bit" (1987).
#include "complex_formulas.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace vt::detail {

namespace complex_formulas {

using Parts = ComplexParts;
constexpr double infinity = std::numeric_limits<double>::infinity();

Parts times_i(const Parts& z) { return {-z.im, z.re}; }
Parts over_i(const Parts& z) { return {z.im, -z.re}; }
Tensor half(const Tensor& x) { return x * 0.5; }
/// factor · x, but x where that is zero, however large the factor.
Tensor scaled(const Tensor& factor, const Tensor& x) { return where(x == 0, x, factor * x); }

// Smith's quotient, as the interpreter computes it.
Parts quotient(const Parts& a, const Parts& b) {
  const Tensor real_is_larger = abs(b.re) >= abs(b.im);
  const Tensor large = where(real_is_larger, b.re, b.im), small = where(real_is_larger, b.im, b.re);
  const Tensor ratio = small / large, scale = large + small * ratio, zero = large == 0, none = abs(large);
  const Tensor re = where(real_is_larger, a.re + a.im * ratio, a.re * ratio + a.im) / scale;
  const Tensor im = where(real_is_larger, a.im - a.re * ratio, a.im * ratio - a.re) / scale;
  return {where(zero, a.re / none, re), where(zero, a.im / none, im)};
}
Parts reciprocal_of(const Parts& z) { return quotient({ones_like(z.re), zeros_like(z.re)}, z); }

// e^x may overflow where its product with a sine does not: the last of it is multiplied in afterwards.
Parts exp_of(const Parts& z) {
  const double most = z.re.dtype() == f64 ? 709 : 88;
  const Tensor beyond = z.re > most;
  const Tensor length = exp(where(beyond, z.re - most, z.re)), rest = where(beyond, std::exp(most), 1.0);
  const Tensor nothing = z.re == -infinity;
  return {where(nothing, 0.0, scaled(length, cos(z.im)) * rest), where(z.im == 0, z.im, where(nothing, 0.0, length * sin(z.im) * rest))};
}

// log |z|: near 1 from |z|² − 1, elsewhere from the larger part.
Tensor log_abs(const Parts& z) {
  const Tensor x = abs(z.re), y = abs(z.im);
  const Tensor large = maximum(x, y), small = minimum(x, y), infinite = isinf(x) | isinf(y);
  const Tensor ratio = small / where(large == 0, 1.0, large), near = (large > 0.5) & (large < 2.0);
  const Tensor argument = where(near, (large - 1.0) * (large + 1.0) + square(small), square(ratio));
  const Tensor rest = half(log1p(argument));
  return where(infinite, infinity, where(near, rest, log(large) + rest));
}
Parts log_of(const Parts& z) { return {log_abs(z), atan2(z.im, z.re)}; }

Parts log1p_of(const Parts& z) {
  const Tensor far = maximum(abs(z.re), abs(z.im)) > 0x1p20, x = where(far, 0.0, z.re), y = where(far, 0.0, z.im);
  const Tensor shifted = 1.0 + z.re;
  return {where(far, log_abs({shifted, z.im}), half(log1p(x * (2.0 + x) + square(y)))), atan2(z.im, shifted)};
}

Parts expm1_of(const Parts& z) {
  const Tensor s = sin(half(z.im));
  return {where(z.im == 0, expm1(z.re), expm1(z.re) * cos(z.im) - 2.0 * square(s)), scaled(exp(z.re), sin(z.im))};
}

Parts sqrt_of(const Parts& z) {
  const bool is_double = z.re.dtype() == f64;
  const Tensor largest = maximum(abs(z.re), abs(z.im));
  const Tensor high = largest > (is_double ? 0x1p1000 : 0x1p120), low = largest < (is_double ? 0x1p-900 : 0x1p-90);
  const Tensor factor = where(high, 0.0625, where(low, 0x1p60, 1.0)), root = where(high, 4.0, where(low, 0x1p-30, 1.0));
  const Tensor x = abs(z.re) * factor, y = z.im * factor;
  const Tensor longer = sqrt(half(x) + half(hypot(x, y)));
  const Tensor shorter = where(longer == 0, y, y / (2.0 * longer));
  const Tensor t = longer * root, s = shorter * root, right = z.re >= 0, endless = isinf(z.im);
  const Tensor re = where(right | isnan(z.re), t, abs(s)), im = where(right | isnan(z.re), s, copysign(t, z.im));
  return {where(endless, infinity, re), where(endless, z.im, im)};
}

Parts sinh_of(const Parts& z) { return {scaled(abs(cos(z.im)), sinh(z.re)) * where(cos(z.im) < 0, -1.0, 1.0), scaled(cosh(z.re), sin(z.im))}; }
Parts cosh_of(const Parts& z) {
  const Tensor s = sin(z.im), h = sinh(z.re);
  return {cosh(z.re) * cos(z.im), where(s == 0, s * copysign(ones_like(h), h), where(h == 0, h * copysign(ones_like(s), s), h * s))};
}

Parts tanh_of(const Parts& z) {
  const double far = z.re.dtype() == f64 ? 22 : 11;  // there tanh is 1 but for what is small next to an ulp
  const Tensor is_far = abs(z.re) > far, x = where(is_far, 0.0, z.re);
  const Tensor t = tan(z.im), beta = 1.0 + square(t), s = sinh(x), rho = sqrt(1.0 + square(s)), scale = 1.0 + beta * square(s);
  const Tensor small = where(isfinite(z.im), 4.0 * sin(z.im) * cos(z.im) * exp(-2.0 * abs(z.re)), 0.0);
  return {where(is_far, copysign(ones_like(z.re), z.re), beta * rho * s / scale), where(is_far, small, t / scale)};
}

Parts one_plus(const Parts& z) { return {1.0 + z.re, z.im}; }
Parts one_minus(const Parts& z) { return {1.0 - z.re, -z.im}; }
/// The imaginary part of conj(a) · b.
Tensor across(const Parts& a, const Parts& b) { return a.re * b.im - a.im * b.re; }

Parts acos_of(const Parts& z) {
  const Parts below = sqrt_of(one_minus(z)), above = sqrt_of(one_plus(z));
  return {2.0 * atan2(below.re, above.re), asinh(across(above, below))};
}
Parts asin_of(const Parts& z) {
  const Parts below = sqrt_of(one_minus(z)), above = sqrt_of(one_plus(z));
  return {atan2(z.re, below.re * above.re - below.im * above.im), asinh(across(below, above))};
}
Parts acosh_of(const Parts& z) {
  const Parts below = sqrt_of({z.re - 1.0, z.im}), above = sqrt_of(one_plus(z));
  return {asinh(below.re * above.re + below.im * above.im), 2.0 * atan2(below.im, above.re)};
}
Parts atanh_of(const Parts& z) {
  const Tensor x = abs(z.re), y = z.im;
  const Tensor re = 0.25 * log1p(4.0 * x / (square(1.0 - x) + square(y)));
  const Tensor im = half(atan2(2.0 * y, (1.0 - x) * (1.0 + x) - square(y)));
  return {copysign(re, z.re), im};
}

Parts sigmoid_of(const Parts& z) {
  const Tensor left = z.re < 0;
  const Parts e = exp_of({where(left, z.re, -z.re), where(left, z.im, -z.im)});
  return quotient({where(left, e.re, 1.0), where(left, e.im, 0.0)}, {1.0 + e.re, e.im});
}

Parts sign_of(const Parts& z) {
  const Tensor length = hypot(z.re, z.im), divisor = where(length == 0, 1.0, length);
  return {z.re / divisor, z.im / divisor};
}

Parts pow_of(const Parts& a, const Parts& b) {
  const Tensor zero = (a.re == 0) & (a.im == 0), constant = (b.re == 0) & (b.im == 0);
  const Parts l = log_of({where(zero, 1.0, a.re), where(zero, 0.0, a.im)});
  const Parts power = exp_of(complex_product(b, l));
  constexpr double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor of_zero = where(b.re > 0, 0.0, nan);
  return {where(zero, where(constant, 1.0, of_zero), power.re), where(zero, where(constant, 0.0, of_zero), power.im)};
}

}  // namespace complex_formulas

ComplexParts complex_product(const ComplexParts& a, const ComplexParts& b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

ComplexParts complex_power(const ComplexParts& base, int exponent) {
  // The inverse comes first: where it fits, its power is 0 no sooner than the result is.
  ComplexParts power, factor = exponent < 0 ? complex_formulas::reciprocal_of(base) : base;
  for (unsigned k = exponent < 0 ? 0u - static_cast<unsigned>(exponent) : static_cast<unsigned>(exponent); k != 0; k >>= 1) {
    if (k & 1u) power = power.re.defined() ? complex_product(power, factor) : factor;
    if (k > 1) factor = complex_product(factor, factor);
  }
  if (!power.re.defined()) return {ones_like(base.re), zeros_like(base.re)};
  return power;
}

bool complex_formula(Op op, const ComplexParts& a, const ComplexParts& b, ComplexParts& result) {
  using namespace complex_formulas;
  constexpr double ln2 = std::numbers::ln2;
  const auto make = [&]() -> Parts {
    switch (op) {
      case Op::mul: return complex_product(a, b);
      case Op::div: return quotient(a, b);
      case Op::pow: return pow_of(a, b);
      case Op::conj: return {a.re, -a.im};
      case Op::sign: return sign_of(a);
      case Op::exp: return exp_of(a);
      case Op::exp2: return exp_of({a.re * ln2, a.im * ln2});
      case Op::expm1: return expm1_of(a);
      case Op::log: return log_of(a);
      case Op::log2: {
        const Parts l = log_of(a);
        return {l.re / ln2, l.im / ln2};
      }
      case Op::log1p: return log1p_of(a);
      case Op::sqrt: return sqrt_of(a);
      case Op::rsqrt: return reciprocal_of(sqrt_of(a));
      case Op::sigmoid: return sigmoid_of(a);
      case Op::sinh: return sinh_of(a);
      case Op::cosh: return cosh_of(a);
      case Op::tanh: return tanh_of(a);
      case Op::sin: return over_i(sinh_of(times_i(a)));
      case Op::cos: return cosh_of(times_i(a));
      case Op::tan: return over_i(tanh_of(times_i(a)));
      case Op::asin: return asin_of(a);
      case Op::acos: return acos_of(a);
      case Op::atanh: return atanh_of(a);
      case Op::asinh: return over_i(asin_of(times_i(a)));
      case Op::acosh: return acosh_of(a);
      case Op::atan: return over_i(atanh_of(times_i(a)));
      default: return {};
    }
  };
  result = make();
  return result.re.defined();
}

}  // namespace vt::detail
