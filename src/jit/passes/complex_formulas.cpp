// Complex functions in real arithmetic, with the branch cuts and special values of C99's Annex G.
// Errors are small relative to the absolute value of the result, not to each part. Inverse
// functions after W. Kahan, "Branch cuts for complex elementary functions, or much ado about
// nothing's sign bit" (1987). Where Annex G leaves a sign open it is that of the C library, which
// the interpreter calls.
#include "complex_formulas.hpp"

#include <cmath>
#include <limits>
#include <numbers>

namespace vt::detail {

namespace complex_formulas {

using Parts = ComplexParts;
constexpr double infinity = std::numeric_limits<double>::infinity(),
                 nan = std::numeric_limits<double>::quiet_NaN();

bool is_double(const Parts& z) { return z.re.dtype() == f64; }
Parts times_i(const Parts& z) { return {-z.im, z.re}; }
/// i · conj(z): sin z is this of the sinh of this, as with the other odd functions.
Parts swapped(const Parts& z) { return {z.im, z.re}; }
Tensor half(const Tensor& x) { return x * 0.5; }
/// One of two numbers, in the dtype of the parts: of numbers alone `where` would make doubles.
Tensor choice(const Tensor& condition, double a, double b, const Parts& like) {
  return where(condition, Tensor(full({}, a, like.re.dtype())), b);
}

/// A power of two, and its inverse, that brings numbers of a size to where their squares, sums and
/// ratios are normal numbers.
struct Scale {
  Tensor factor, inverse;
  Scale(const Parts& z, const Tensor& size) {
    const double edge = is_double(z) ? 0x1p500 : 0x1p60;
    const Tensor large = size > edge, small = size < 1 / edge;
    factor = where(large, 1 / edge, choice(small, edge, 1, z));
    inverse = where(large, edge, choice(small, 1 / edge, 1, z));
  }
};
Tensor size_of(const Parts& z) { return maximum(abs(z.re), abs(z.im)); }

// Smith's quotient of operands that are scaled first, as the interpreter computes it.
Parts quotient(const Parts& a, const Parts& b) {
  const Tensor length = size_of(b), zero = length == 0;
  const Scale above(a, size_of(a)), below(b, length);
  const Parts n{a.re * above.factor, a.im * above.factor},
      d{b.re * below.factor, b.im * below.factor};
  const Tensor real_is_larger = abs(d.re) >= abs(d.im);
  const Tensor large = where(real_is_larger, d.re, d.im), small = where(real_is_larger, d.im, d.re);
  const Tensor ratio = small / large, scale = where(zero, length, large + small * ratio),
               back = below.factor * above.inverse;
  const Tensor re = where(real_is_larger, n.re + n.im * ratio, n.re * ratio + n.im);
  const Tensor im = where(real_is_larger, n.im - n.re * ratio, n.im * ratio - n.re);
  return {where(zero, n.re, re) / scale * back, where(zero, n.im, im) / scale * back};
}
Parts reciprocal_of(const Parts& z) { return quotient({ones_like(z.re), zeros_like(z.re)}, z); }

/// The power of a base to |x|, which may overflow where its product with a sine does not: that to
/// |rest|, times `first`, times `second`. Each of these is `step_power`, the base's power to
/// `step`, where |x| is larger than `most`, than `most` + `step`.
struct Power {
  Tensor rest, first, second;
  Power(const Tensor& x, const Tensor& size, double most, double step, double step_power) {
    const Tensor beyond = size > most, far_beyond = size > most + step;
    const Parts like{x, x};
    rest = where(beyond, x - copysign(choice(far_beyond, 2 * step, step, like), x), x);
    first = choice(beyond, step_power, 1, like);
    second = choice(far_beyond, step_power, 1, like);
  }
  /// `rest_power` is of the rest. The sine first, as it may be the smallest of numbers.
  Tensor product(const Tensor& sine, const Tensor& rest_power) const {
    return sine * first * second * rest_power;
  }
};
/// Of e: cosh and sinh of what is left of a large x do not differ.
Power natural_power(const Tensor& x, const Tensor& size) {
  const bool doubles = x.dtype() == f64;
  const double step = doubles ? 600 : 64;
  return Power(x, size, doubles ? 709 : 88, step, std::exp(step));
}

/// e^x or 2^x, transposed by `angle`, which is zero where `im` is.
Parts transposed_power(const Power& power, const Tensor& rest_power, const Tensor& x,
                       const Tensor& im, const Tensor& angle) {
  const Tensor turn = where(isinf(x) & !isfinite(im), copysign(zeros_like(im), im), angle);
  return {power.product(cos(turn), rest_power),
          where(im == 0, im, power.product(sin(turn), rest_power))};
}
Parts exp_of(const Parts& z) {
  const Power power = natural_power(z.re, z.re);
  return transposed_power(power, exp(power.rest), z.re, z.im, z.im);
}
Parts exp2_of(const Parts& z) {
  const double most = is_double(z) ? 1023 : 127, step = is_double(z) ? 900 : 96;
  const Power power(z.re, z.re, most, step, std::exp2(step));
  return transposed_power(power, exp2(power.rest), z.re, z.im, z.im * std::numbers::ln2);
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

// From |1 + z|² − 1, unless that is far from zero.
Parts log1p_of(const Parts& z) {
  const Tensor excess = z.re * (2.0 + z.re) + square(z.im), shifted = 1.0 + z.re;
  return {where(abs(excess) < 0.5, half(log1p(excess)), log_abs({shifted, z.im})),
          atan2(z.im, shifted)};
}

Parts expm1_of(const Parts& z) {
  const Parts e = exp_of(z);
  const Tensor s = sin(half(z.im)), grown = expm1(z.re), near = (abs(z.re) < 40.0) & isfinite(z.im);
  return {where(z.im == 0, grown, where(near, grown * cos(z.im) - 2.0 * square(s), e.re - 1.0)),
          e.im};
}

/// `below_overflow`: of numbers far from the largest ones.
Parts sqrt_of(const Parts& z, bool below_overflow = false) {
  const Tensor largest = maximum(abs(z.re), abs(z.im));
  const Tensor low = largest < (is_double(z) ? 0x1p-900 : 0x1p-90);
  Tensor factor = choice(low, 0x1p60, 1, z), root = choice(low, 0x1p-30, 1, z);
  if (!below_overflow) {
    const Tensor high = largest > (is_double(z) ? 0x1p1000 : 0x1p120);
    factor = where(high, 0.0625, factor);
    root = where(high, 4.0, root);
  }
  const Tensor x = abs(z.re) * factor, y = z.im * factor;
  const Tensor longer = sqrt(half(x) + half(hypot(x, y)));
  const Tensor shorter = where(longer == 0, y, y / (2.0 * longer));
  const Tensor t = longer * root, s = shorter * root, right = z.re >= 0, endless = isinf(z.im);
  const Tensor re = where(right | isnan(z.re), t, abs(s)),
               im = where(right | isnan(z.re), s, copysign(t, z.im));
  if (below_overflow) return {re, im};
  return {where(endless, infinity, re), where(endless, z.im, im)};
}

Parts sinh_of(const Parts& z) {
  const Power power = natural_power(z.re, abs(z.re));
  const Tensor zero = z.re == 0, known = (zero | isinf(z.re)) & !isfinite(z.im);
  return {where(known, where(zero, z.re, infinity), power.product(cos(z.im), sinh(power.rest))),
          where(z.im == 0, z.im, power.product(sin(z.im), cosh(power.rest)))};
}
Parts cosh_of(const Parts& z) {
  const Power power = natural_power(z.re, abs(z.re));
  const Tensor lost = !isfinite(z.im), on_axis = (z.im == 0) & (z.re != 0);
  const Tensor im = where((z.re == 0) & lost, 0.0, power.product(sin(z.im), sinh(power.rest)));
  return {where(isinf(z.re) & lost, infinity, power.product(cos(z.im), cosh(power.rest))),
          where(on_axis, where(z.re < 0, -z.im, z.im), im)};
}

Parts tanh_of(const Parts& z) {
  const double far =
      is_double(z) ? 22 : 11;  // there tanh is 1 but for what is small next to an ulp
  const Tensor is_far = abs(z.re) > far, x = where(is_far, 0.0, z.re), lost = !isfinite(z.im),
               endless = isinf(z.re);
  const Tensor t = tan(z.im), beta = 1.0 + square(t), s = sinh(x), rho = sqrt(1.0 + square(s)),
               scale = 1.0 + beta * square(s);
  const Tensor small = 4.0 * sin(z.im) * cos(z.im) * exp(-2.0 * abs(z.re));
  const Tensor far_re = where(lost & !endless, nan, copysign(ones_like(z.re), z.re));
  const Tensor far_im = where(lost & endless, copysign(zeros_like(z.im), z.im), small);
  return {where(z.re == 0, z.re, where(is_far, far_re, beta * rho * s / scale)),
          where(z.im == 0, z.im, where(is_far, far_im, t / scale))};
}

Parts one_plus(const Parts& z) { return {1.0 + z.re, z.im}; }
Parts one_minus(const Parts& z) { return {1.0 - z.re, -z.im}; }
/// The imaginary part of conj(a) · b.
Tensor across(const Parts& a, const Parts& b) { return a.re * b.im - a.im * b.re; }

/// An operand of acos and asin. Beyond `edge` they have the angles of a smaller number and, but for
/// a logarithm, its area function; infinities have those of the numbers in the same direction.
struct ArcOperand {
  Parts z;
  Tensor endless,
      logarithm;  ///< of a part; what is missing from the absolute value of the area function
  explicit ArcOperand(const Parts& given) {
    const double edge = complex_formulas::is_double(given) ? 0x1p1000 : 0x1p100, factor = 0x1p-16;
    const Tensor far_re = isinf(given.re), far_im = isinf(given.im),
                 far = (abs(given.re) > edge) | (abs(given.im) > edge);
    const auto brought = [&](const Tensor& x, const Tensor& own, const Tensor& other) {
      return where(own, copysign(full_like(x, edge), x),
                   x * where(other, 0.0, choice(far, factor, 1, given)));
    };
    z = {brought(given.re, far_re, far_im), brought(given.im, far_im, far_re)};
    endless = far_re | far_im;
    logarithm = choice(far, -std::log(factor), 0, given);
  }
  Parts below() const { return sqrt_of(one_minus(z), true); }
  Parts above() const { return sqrt_of(one_plus(z), true); }
  /// With the sign of `sign`.
  Tensor area(const Tensor& value, const Tensor& sign) const {
    return copysign(where(endless, infinity, abs(asinh(value)) + logarithm), sign);
  }
};

Parts acos_of(const Parts& z) {
  const ArcOperand near(z);
  const Parts below = near.below(), above = near.above();
  return {where(z.re == 0, std::numbers::pi / 2, 2.0 * atan2(below.re, above.re)),
          near.area(across(above, below), -z.im)};
}
Parts asin_of(const Parts& z) {
  const ArcOperand near(z);
  const Parts below = near.below(), above = near.above();
  return {where(z.re == 0, z.re, atan2(near.z.re, below.re * above.re - below.im * above.im)),
          near.area(across(below, above), z.im)};
}
Parts acosh_of(const Parts& z) {
  const Parts arc = acos_of(z);
  return {abs(arc.im), copysign(arc.re, z.im)};
}

// The real part is log(1 + 4x / ((1 − x)² + y²)) / 4 for positive x. The square of y vanishes only
// where it does not count or x is 1, where the logarithm is that of 2 / y.
Parts atanh_of(const Parts& z) {
  const int digits = is_double(z) ? 53 : 24;
  const double edge = is_double(z) ? 0x1p510 : 0x1p62;
  const Tensor x = abs(z.re), y = z.im, size = abs(y),
               near = (x == 1.0) & (size < std::ldexp(1.0, -2 * digits - 1));
  const Tensor factor = choice((x > edge) | (size > edge), 0x1p-4 / edge, 1, z);
  const Tensor left = (1.0 - x) * factor, up = y * factor;
  const Tensor above = where(near, std::ldexp(1.0, -digits), x * factor * 4.0 * factor);
  const Tensor area = log1p(above / where(near, size, square(left) + square(up)));
  const Tensor re = where(near, half(area + (digits + 1) * std::numbers::ln2), 0.25 * area),
               endless = isinf(x) | isinf(y);
  const Tensor im = half(atan2(2.0 * up, left * (1.0 + x) - up * y));
  return {copysign(where((x == 0) | endless, 0.0, re), z.re),
          where(isinf(y), copysign(full_like(y, std::numbers::pi / 2), y), im)};
}

Parts sigmoid_of(const Parts& z) {
  const Tensor left = z.re < 0;
  const Parts e = exp_of({where(left, z.re, -z.re), where(left, z.im, -z.im)});
  return quotient({where(left, e.re, 1.0), where(left, e.im, 0.0)}, {1.0 + e.re, e.im});
}

Parts sign_of(const Parts& z) {
  const Scale scale(z, size_of(z));
  const Tensor x = z.re * scale.factor, y = z.im * scale.factor, length = hypot(x, y),
               divisor = where(length == 0, 1.0, length);
  return {x / divisor, y / divisor};
}

Parts pow_of(const Parts& a, const Parts& b) {
  const Tensor zero = (a.re == 0) & (a.im == 0), constant = (b.re == 0) & (b.im == 0);
  const Parts l = log_of({where(zero, 1.0, a.re), where(zero, 0.0, a.im)});
  const Parts power = exp_of(complex_product(b, l));
  const Tensor of_zero = choice(b.re > 0, 0, nan, a);
  return {where(zero, where(constant, 1.0, of_zero), power.re),
          where(zero, where(constant, 0.0, of_zero), power.im)};
}

}  // namespace complex_formulas

ComplexParts complex_product(const ComplexParts& a, const ComplexParts& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

ComplexParts complex_power(const ComplexParts& base, int exponent) {
  // The inverse comes first: where it fits, its power is 0 no sooner than the result is.
  ComplexParts power, factor = exponent < 0 ? complex_formulas::reciprocal_of(base) : base;
  for (unsigned k = exponent < 0 ? 0u - static_cast<unsigned>(exponent)
                                 : static_cast<unsigned>(exponent);
       k != 0; k >>= 1) {
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
      case Op::exp2: return exp2_of(a);
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
      case Op::sin: return swapped(sinh_of(swapped(a)));
      case Op::cos: return cosh_of(times_i(a));
      case Op::tan: return swapped(tanh_of(swapped(a)));
      case Op::asin: return asin_of(a);
      case Op::acos: return acos_of(a);
      case Op::atanh: return atanh_of(a);
      case Op::asinh: return swapped(asin_of(swapped(a)));
      case Op::acosh: return acosh_of(a);
      case Op::atan: return swapped(atanh_of(swapped(a)));
      default: return {};
    }
  };
  result = make();
  return result.re.defined();
}

}  // namespace vt::detail
