// The incomplete gamma function, the gamma distribution's density and the exponential integrals:
// prefactors computed without cancellation, and loops in which every element stops on its own.
#include <vt/special.hpp>

#include <cmath>
#include <numbers>

#include "../../numerics/special_math.hpp"
#include "../support/composed.hpp"
#include "prefixes.hpp"

namespace vt::detail::incomplete {

using element_functions::Leaves;  // not the one around
using elementwise::Composed;

/// Σ xⁿ / ((a + 1) … (a + n)) and its derivative by a, where `needed`; else 1 and 0.
Tensors gamma_series(const Tensor& a, const Tensor& x, const Tensor& needed, CallSite where) {
  const FlatFunction loop = [where](Leaves in) -> Tensors {
    const Tensor a = in[0], x = in[1], needed = in[2];
    // n, the term, its derivative, and the sums
    const Tensors init = {number(0), number(1), number(0), number(1), number(0)};
    const auto going = [&](Leaves s) -> Tensors {
      return {logical_and(needed, s[1] > s[3] * least_part)};
    };
    const auto body = [&](Leaves s) -> Tensors {
      const Tensor n = s[0] + 1.0, below = a + n, ratio = x / below, term = s[1] * ratio,
                   slope = s[2] * ratio - term / below;
      return {n, term, slope, s[3] + term, s[4] + slope};
    };
    const Tensors s = run_while("vt::igamma", going, body, init, where);
    return {s[3], s[4]};
  };
  const Tensor operands[] = {a, x, needed};
  return for_each_element(loop, operands, where);
}

/// The continued fraction of Γ(a, x) eˣ x⁻ᵃ and its derivative by a, where `needed`. By Steed's
/// method: what is added gets ever smaller.
Tensors gamma_fraction(const Tensor& a, const Tensor& x, const Tensor& needed, CallSite where) {
  const FlatFunction loop = [where](Leaves in) -> Tensors {
    const Tensor a = in[0], x = in[1], needed = in[2];
    const Tensor first = x + 1.0 - a, d = 1.0 / first, slope = d * d;
    // i, the denominator's inverse, what was added last, the sum; and derivatives
    const Tensors init = {number(0), d, slope, d, slope, d, slope};
    const auto going = [&](Leaves s) -> Tensors {
      const Tensor small = logical_and(abs(s[3]) <= abs(s[5]) * least_part,
                                       abs(s[4]) <= (abs(s[6]) + abs(s[5])) * least_part);
      return {logical_and(needed, logical_not(small))};
    };
    const auto body = [&](Leaves s) -> Tensors {
      const Tensor i = s[0] + 1.0, top = i * (a - i);  // top' = i, bottom' = −1
      const Tensor d = 1.0 / (top * s[1] + (first + 2.0 * i));
      const Tensor d_slope = d * d * (1.0 - i * s[1] - top * s[2]);
      const Tensor factor = -(top * s[1] * d),
                   factor_slope = -(i * s[1] * d + top * (s[2] * d + s[1] * d_slope));
      const Tensor added = factor * s[3], added_slope = factor_slope * s[3] + factor * s[4];
      return {i, d, d_slope, added, added_slope, s[5] + added, s[6] + added_slope};
    };
    const Tensors s = run_while("vt::igamma", going, body, init, where);
    return {s[5], s[6]};
  };
  const Tensor operands[] = {a, x, needed};
  return for_each_element(loop, operands, where);
}

/// xᵃ e⁻ˣ / Γ(a + 1) for a, x > 0.
Tensor gamma_prefix(const Tensor& a, const Tensor& x) {
  // Powers and exponentials are taken in parts, which fit where the whole does not; where they do
  // not either, the result is 0.
  const Tensor direct = a <= 100.0;
  const Tensor u = where(direct, maximum(a, 1e-300), 1.0),
               v = where(direct, minimum(x, number(4000)), 1.0);
  const Tensor half = pow(v, 0.5 * u) * exp(-0.5 * v);
  const Tensor low = half * half / (u * vt::special::gamma(u));
  const Tensor A = where(direct, 100.0, a), X = where(direct, 100.0, x),
               near = logical_and(2.0 * X >= A, X <= 2.0 * A);
  const Tensor far = where(near, A, X), difference = A - far;
  const Tensor power = power_of_quotient(far, A, 0.25 * A), rest = exp(0.25 * difference);
  const Tensor fits = logical_and(logical_and(power > 0.0, power < infinity),
                                  logical_and(rest > 0.0, rest < infinity));
  const Tensor quarter = where(fits, power, 0.0) * where(fits, rest, 0.0),
               square = quarter * quarter;
  const Tensor parts = square * (square * (1.0 + lost_in_sum(A, -far, difference)));
  const Tensor high =
      where(near, exponential_of_less(exponent_of_excess(A, where(near, X - A, 0.0))), parts);
  return where(direct, low, high / (sqrt(2 * std::numbers::pi * A) * gamma_star(A)));
}

/// From which a on Temme's uniform expansion is taken, for x within half of a; and from which on P
/// and Q are 0 and 1 for other x.
inline constexpr double uniform_from = 2500, certain_from = 1e4;

/// Where each form is used, and operands that every form can take. `far`: where P and Q are 0
/// and 1.
struct GammaRange {
  Tensor inside, by_series, by_fraction, small, uniform, far, a, x;
};
/// `seen`: it is P or Q that is wanted, or what is multiplied by its slope.
GammaRange gamma_range(const Tensor& a, const Tensor& x, bool seen) {
  GammaRange r;
  r.inside = logical_and(logical_and(a > 0.0, a < infinity), logical_and(x > 0.0, x < infinity));
  const Tensor large = logical_and(r.inside, a >= uniform_from);
  const Tensor part = where(large, (x - a) / a, 0.0);
  r.uniform = logical_and(large, abs(part) <= 0.5);
  if (seen) r.uniform = logical_and(r.uniform, a * (part * part) <= 8000.0);
  r.far = logical_and(logical_and(large, a >= (seen ? certain_from : infinity)),
                      logical_not(r.uniform));
  // Of the largest a only a = x is left, and twice of it must be a number.
  const auto within = [&](const Tensor& t) {
    return where(r.far, uniform_from, where(r.uniform, minimum(t, 1e300), where(r.inside, t, 1.0)));
  };
  r.a = within(a), r.x = within(x);
  r.small = logical_and(r.a < 1.0, r.x <= 1.1);
  const Tensor below = logical_or(r.small, r.x - 1.0 / (3.0 * maximum(r.x, 1.0)) < r.a),
               other = logical_and(r.inside, logical_not(logical_or(r.uniform, r.far)));
  r.by_series = logical_and(other, below);
  r.by_fraction = logical_and(other, logical_not(below));
  return r;
}

/// What Temme's expansion (1979; DLMF 8.12) is made of, where it is used; elsewhere anything.
struct UniformTerms {
  Tensor eta;    ///< η²/2 = x/a − 1 − log(x/a), of the sign of x − a
  Tensor sum;    ///< Σ cₖ(η) a⁻ᵏ
  Tensor slope;  ///< Σ k cₖ(η) a⁻ᵏ⁻¹
};
UniformTerms uniform_terms(const GammaRange& r) {
  using namespace special_tables;
  const Tensor a = where(r.uniform, r.a, uniform_from), x = where(r.uniform, r.x, uniform_from);
  const Tensor d = x - a, eta = d / a * fitted(d / (a + x), temme_ratio), inverse = 1.0 / a;
  const Tensor c1 = fitted(eta, temme_1), c2 = inverse * fitted(eta, temme_2),
               c3 = inverse * inverse * fitted(eta, temme_3);
  return {eta, fitted(eta, temme_0) + inverse * (c1 + (c2 + c3)),
          inverse * inverse * (c1 + (2.0 * c2 + 3.0 * c3))};
}
/// −∂P/∂a over xᵃ e⁻ˣ / Γ(a + 1).
Tensor uniform_slope(const GammaRange& r) {
  const UniformTerms t = uniform_terms(r);
  return 1.0 - gamma_star(where(r.uniform, r.a, uniform_from)) *
                   (0.5 * t.eta + t.sum * (0.5 * (t.eta * t.eta) + 0.5 / r.a) + t.slope);
}

Tensors fraction_in(const GammaRange& r, CallSite user) {
  return gamma_fraction(where(r.by_fraction, r.a, 1.0), where(r.by_fraction, r.x, 2.0),
                        r.by_fraction, user);
}

/// P where the series is used, Q where the fraction is; for small operands Q by itself too.
Tensor incomplete_gamma(const Tensor& a, const Tensor& x, bool upper, CallSite user) {
  const GammaRange r = gamma_range(a, x, true);
  const Tensor prefix = gamma_prefix(r.a, r.x);
  const Tensor series = prefix * gamma_series(r.a, r.x, r.by_series, user)[0];
  const Tensor fraction = prefix * r.a * fraction_in(r, user)[0];
  // The smaller one of both: ½ erfc(|η| √(a/2)), and what that is short of it.
  const UniformTerms terms = uniform_terms(r);
  const Tensor A = where(r.uniform, r.a, uniform_from), X = where(r.uniform, r.x, uniform_from),
               root = sqrt(0.5 * A), above = X >= A;
  const Tensor tail = 0.5 * exponential_of_less(exponent_of_excess(A, X - A)) *
                      (vt::special::erfcx(abs(terms.eta) * root) +
                       where(above, terms.sum, -terms.sum) / (std::sqrt(std::numbers::pi) * root));
  Tensor result;
  if (upper) {
    // 1 − P = ((Γ(1 + a) − 1) − (xᵃ − 1) − a xᵃ Σ (−x)ⁿ/((a + n) n!)) / Γ(1 + a), of which nothing
    // cancels for small a.
    const Tensor A = where(r.small, r.a, 0.5), X = where(r.small, r.x, 0.5),
                 power = expm1(A * log(X)), near = fitted(A, special_tables::gamma_near_1);
    constexpr int terms = 18;
    Tensor factorial = -X, sum = factorial / (A + 1.0);
    for (int n = 2; n <= terms; ++n) {
      factorial = factorial * (X / -static_cast<double>(n));
      sum = sum + factorial / (A + static_cast<double>(n));
    }
    const Tensor direct = (A * near - power - A * (power + 1.0) * sum) / (1.0 + A * near);
    result = where(r.small, direct, where(r.by_series, 1.0 - series, fraction));
  } else {
    result = where(r.by_series, series, 1.0 - fraction);
  }
  const auto of_sides = [&](const Tensor& higher, const Tensor& smaller) {
    return where(higher, upper ? smaller : 1.0 - smaller, upper ? 1.0 - smaller : smaller);
  };
  result = where(r.uniform, of_sides(above, tail),
                 where(r.far, of_sides(x > a, zeros_like(tail)), result));
  const double at_zero = upper ? 1 : 0, at_infinity = upper ? 0 : 1;
  // On the edges: all mass is at 0 for a = 0, and beyond every x for a = ∞.
  const Tensor edge = where(equal(a, 0.0), where(equal(x, 0.0), nan, at_infinity),
                            where(equal(a, infinity), where(equal(x, infinity), nan, at_zero),
                                  where(equal(x, 0.0), at_zero, at_infinity)));
  const Tensor valid = logical_and(a >= 0.0, x >= 0.0);
  return where(r.inside, result, where(valid, edge, nan));
}

/// log x − ψ(a + 1), whose parts are near one another where a is large and x near it.
Tensor log_less_digamma(const Tensor& a, const Tensor& x) {
  constexpr double from = 100;
  const Tensor large = a >= from, A = where(large, a, from), X = where(large, x, from),
               part = (X - A) / A, close = abs(part) <= 0.5, inverse = 1.0 / A,
               square = inverse * inverse;
  const Tensor logarithm = where(close, log1p(where(close, part, 0.0)), log(X / A));
  // ψ(a + 1) − log a by Stirling's series
  const Tensor rest =
      0.5 * inverse - square * (1.0 / 12 - square * (1.0 / 120 - square * (1.0 / 252)));
  return where(large, logarithm - rest, log(x) - digamma(where(large, 1.0, a) + 1.0));
}

/// −(∂P/∂a)/(∂P/∂x); the prefix that both share is not in it.
Tensor sample_slope(const Tensor& a, const Tensor& x, CallSite user) {
  const GammaRange r = gamma_range(a, x, false);
  const Tensors series = gamma_series(r.a, r.x, r.by_series, user);
  const Tensors fraction = fraction_in(r, user);
  const Tensor relative = log_less_digamma(r.a, r.x);
  const Tensor below = -(r.x / r.a) * (relative * series[0] + series[1]);
  const Tensor above = r.x * ((relative + 1.0 / r.a) * fraction[0] + fraction[1]);
  // At x = 0 what −x (log x − ψ(a + 1)) / a begins with; NaN whose derivatives are NaN too.
  const Tensor zero = logical_and(equal(x, 0.0), a > 0.0), A = where(zero, a, 1.0),
               X = where(zero, x, 1.0);
  const Tensor edge = where(zero, (vt::special::entr(X) + X * digamma(A + 1.0)) / A, nan * (a + x));
  const Tensor inside =
      where(r.uniform, r.x / r.a * uniform_slope(r), where(r.by_series, below, above));
  return where(r.inside, inside, edge);
}

Tensor sample_slope_function(Leaves operands, CallSite where) {
  const FlatFunction f = [where](Leaves in) -> Tensors {
    return {sample_slope(in[0], in[1], where)};
  };
  return by_forward_mode(f, operands, where);
}

/// At x = 0 the density of the gamma distribution, xᵃ⁻¹ e⁻ˣ / Γ(a), as a product whose derivatives
/// by x are right there: e⁻ˣ as a polynomial, and 1/Γ(a) for whole a, as for others the product is
/// 0 or ∞ anyway. By a it is constant.
Tensor gamma_density_at_zero(const Tensor& a, const Tensor& x) {
  Tensor series = number(1), factor = number(1);
  for (int k = end_derivatives; k >= 1; --k) {
    series = 1.0 - x / static_cast<double>(k) * series;
    factor = where(a > k + 0.5, factor * (1.0 / k), factor);
  }
  return pow(x, stop_gradient(a) - 1.0) * series * factor;
}
/// The density of the gamma distribution.
Tensor gamma_density_function(Leaves operands, CallSite where_called) {
  const Tensor &a = operands[0], &x = operands[1];
  const Tensor inside =
      logical_and(logical_and(a >= 0.0, a < infinity), logical_and(x > 0.0, x < infinity));
  // At a = 0 it is 0, with the derivatives close by.
  const Tensor none = equal(a, 0.0);
  const Tensor positive[] = {where(inside, a + where(none, 1e-300, 0.0), 1.0),
                             where(inside, x, 1.0)};
  const FlatFunction f = [](Leaves in) -> Tensors {
    return {gamma_prefix(in[0], in[1]) * (in[0] / in[1])};
  };
  // log x − ψ(a) and (a − 1)/x − 1 times the density
  const Tensor density = with_slopes(
      f,
      [](std::size_t i, Leaves x, const Tensor& density) {
        return density *
               (i == 0 ? log_less_digamma(x[0], x[1]) + 1.0 / x[0] : ((x[0] - x[1]) - 1.0) / x[1]);
      },
      positive, where_called);
  const Tensor zero = equal(x, 0.0);
  return where(inside, density - where(none, stop_gradient(density), 0.0),
               where(zero, gamma_density_at_zero(where(zero, a, 2.0), where(zero, x, 1.0)),
                     where(isnan(x + a), nan, 0.0)));
}

/// xᵃ e⁻ˣ / Γ(a + 1) with its slopes.
Tensor gamma_prefix(const Tensor& a, const Tensor& x, CallSite user) {
  const FlatFunction f = [](Leaves in) -> Tensors { return {gamma_prefix(in[0], in[1])}; };
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    return value * (i == 0 ? log_less_digamma(in[0], in[1]) : (in[0] - in[1]) / in[1]);
  };
  const Tensor operands[] = {a, x};
  return with_slopes(f, slope, operands, user);
}
/// ∂P/∂a, in which nothing is divided by a: its limit at a = 0 is what it is close by. 0 at x = 0.
Tensor incomplete_gamma_by_a(Leaves operands, CallSite user) {
  const FlatFunction f = [user](Leaves in) -> Tensors {
    const Tensor a = in[0] + where(equal(in[0], 0.0), 1e-300, 0.0);
    const GammaRange r = gamma_range(a, in[1], true);
    const Tensors series = gamma_series(r.a, r.x, r.by_series, user);
    const Tensors fraction = fraction_in(r, user);
    const Tensor relative = log_less_digamma(r.a, r.x);
    const Tensor below = relative * series[0] + series[1],
                 above = -((r.a * relative + 1.0) * fraction[0] + r.a * fraction[1]);
    const Tensor inside = gamma_prefix(r.a, r.x, user) *
                          where(r.uniform, -uniform_slope(r), where(r.by_series, below, above));
    return {where(logical_and(r.inside, logical_not(r.far)), inside, 0.0)};
  };
  return by_forward_mode(f, operands, user);
}

/// f(operands, line) of two operands that are broadcast to one shape.
template <class F>
Tensor of_both(const char* name, Operand& a, Operand& x, const F& f) {
  const Composed composed(name, a, x);
  const CallSite where = user_line(a.where);
  const Shape shape =
      broadcast_shape(name, std::initializer_list<Tensor>{a.tensor, x.tensor}, where);
  const Tensor operands[] = {broadcast(a.tensor, shape, where), broadcast(x.tensor, shape, where)};
  return composed(f(Leaves(operands), where));
}

Tensor incomplete_gamma_function(Leaves operands, CallSite where, bool upper) {
  const FlatFunction f = [upper, where](Leaves in) -> Tensors {
    return {incomplete_gamma(in[0], in[1], upper, where)};
  };
  const auto slope = [upper, where](std::size_t i, Leaves in, const Tensor&) {
    const Tensor &a = in[0], &x = in[1];
    // NaN to all orders outside
    const Tensor valid = logical_and(logical_and(a >= 0.0, x >= 0.0), a + x > 0.0);
    const Tensor sign = formulas::where(valid, upper ? -1.0 : 1.0, nan);
    return sign * (i == 0 ? incomplete_gamma_by_a(in, where) : gamma_density_function(in, where));
  };
  return with_slopes(f, slope, operands, where);
}

// --- the exponential integrals -------------------------------------------------------------------

/// For n ≥ 1: up to x = 1 by its series, beyond by the fraction of Γ(1 − n, x) = Eₙ(x) x¹⁻ⁿ.
Tensor exponential_integral(const Tensor& n, const Tensor& x, CallSite user) {
  const Tensor small = x <= 1.0, X = where(logical_and(small, x > 0.0), x, 0.5);
  constexpr int terms = 20;
  Tensor power = ones_like(X), sum = zeros_like(X), special = zeros_like(X);  // (−x)ᵐ/m!
  for (int m = 0; m < terms; ++m) {
    const Tensor place = static_cast<double>(m) - n + 1.0, own = equal(place, 0.0);
    sum = sum + where(own, 0.0, power / where(own, 1.0, place));
    special = where(own, power, special);
    power = power * (X / -static_cast<double>(m + 1));
  }
  const Tensor series = special * (digamma(n) - log(X)) - sum;
  const Tensor at = where(logical_and(x > 1.0, x < infinity), x, 2.0);
  const Tensor fraction =
      exp(-at) * gamma_fraction(1.0 - n, at, logical_and(x > 1.0, x < infinity), user)[0];
  const Tensor at_zero = where(n > 1.0, 1.0 / where(n > 1.0, n - 1.0, 1.0), infinity);
  return where(equal(n, 1.0), -vt::special::expi(-x),
               where(equal(x, 0.0), at_zero,
                     where(small, series, where(equal(x, infinity), 0.0, fraction))));
}

Tensor exponential_integral_function(Leaves operands, CallSite user) {
  const FlatFunction f = [user](Leaves in) -> Tensors {
    const Tensor &n = in[0], &x = in[1],
                 valid = logical_and(logical_and(n >= 0.0, equal(n, floor(n))), x >= 0.0),
                 none = equal(n, 0.0);
    const Tensor order = where(logical_and(valid, logical_not(none)), n, 1.0),
                 X = where(valid, x, 1.0);
    return {where(valid, where(none, exp(-X) / X, exponential_integral(order, X, user)), nan)};
  };
  const auto slope = [user](std::size_t i, Leaves in, const Tensor& value) {
    if (i == 0) return zeros_like(value);
    const Tensor &n = in[0], &x = in[1], none = equal(n, 0.0);
    const Tensor lower[] = {where(none, 0.0, n - 1.0), x};
    return -exponential_integral_function(lower, user) * where(none, 1.0 + 1.0 / x, 1.0);
  };
  return with_slopes(f, slope, operands, user);
}

}  // namespace vt::detail::incomplete

namespace vt {

namespace parts_of_gamma = detail::incomplete;
Tensor igamma(Operand a, Operand x) {
  return parts_of_gamma::of_both(
      "igamma", a, x, [](std::span<const Tensor> operands, CallSite where) {
        return parts_of_gamma::incomplete_gamma_function(operands, where, false);
      });
}
Tensor igammac(Operand a, Operand x) {
  return parts_of_gamma::of_both(
      "igammac", a, x, [](std::span<const Tensor> operands, CallSite where) {
        return parts_of_gamma::incomplete_gamma_function(operands, where, true);
      });
}
Tensor random_gamma_grad(Operand a, Operand x) {
  return parts_of_gamma::of_both("random_gamma_grad", a, x, parts_of_gamma::sample_slope_function);
}
Tensor special::expn(Operand n, Operand x) {
  return parts_of_gamma::of_both("special::expn", n, x,
                                 parts_of_gamma::exponential_integral_function);
}

}  // namespace vt
