// beta, betaln and the incomplete gamma and beta functions: prefixes that keep their digits, and loops in which every lane stops on its own.
#include <vt/special.hpp>

#include <limits>
#include <numbers>

#include "composed.hpp"
#include "element_functions.hpp"
#include "formulas.hpp"
#include "special_math.hpp"

namespace vt::detail::incomplete {

using elementwise::Composed;
using namespace element_functions;
using element_functions::Leaves;  // not the one around
using namespace formulas;
inline constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// Terms below this part of the sum are its last digit; the derivatives' terms are larger by a logarithm.
inline constexpr double least_part = 0x1p-62;

/// Σ xⁿ / ((a + 1) … (a + n)) and its derivative by a, where `needed`; else 1 and 0.
Tensors gamma_series(const Tensor& a, const Tensor& x, const Tensor& needed, Where where) {
  const FlatFunction loop = [where](Leaves in) -> Tensors {
    const Tensor a = in[0], x = in[1], needed = in[2];
    // n, the term, its derivative, and the sums
    const Tensors init = {number(0), number(1), number(0), number(1), number(0)};
    const auto going = [&](Leaves s) -> Tensors { return {logical_and(needed, s[1] > s[3] * least_part)}; };
    const auto body = [&](Leaves s) -> Tensors {
      const Tensor n = s[0] + 1.0, below = a + n, ratio = x / below, term = s[1] * ratio, slope = s[2] * ratio - term / below;
      return {n, term, slope, s[3] + term, s[4] + slope};
    };
    const Tensors s = run_while("vt::igamma", going, body, init, where);
    return {s[3], s[4]};
  };
  const Tensor operands[] = {a, x, needed};
  return for_each_element(loop, operands, where);
}

/// The continued fraction of Γ(a, x) eˣ x⁻ᵃ and its derivative by a, where `needed`. By Steed's method: what is added gets ever smaller.
Tensors gamma_fraction(const Tensor& a, const Tensor& x, const Tensor& needed, Where where) {
  const FlatFunction loop = [where](Leaves in) -> Tensors {
    const Tensor a = in[0], x = in[1], needed = in[2];
    const Tensor first = x + 1.0 - a, d = 1.0 / first, slope = d * d;
    // i, the denominator's inverse, what was added last, the sum; and derivatives
    const Tensors init = {number(0), d, slope, d, slope, d, slope};
    const auto going = [&](Leaves s) -> Tensors {
      const Tensor small = logical_and(abs(s[3]) <= abs(s[5]) * least_part, abs(s[4]) <= (abs(s[6]) + abs(s[5])) * least_part);
      return {logical_and(needed, logical_not(small))};
    };
    const auto body = [&](Leaves s) -> Tensors {
      const Tensor i = s[0] + 1.0, top = i * (a - i);  // top' = i, bottom' = −1
      const Tensor d = 1.0 / (top * s[1] + (first + 2.0 * i));
      const Tensor d_slope = d * d * (1.0 - i * s[1] - top * s[2]);
      const Tensor factor = -(top * s[1] * d), factor_slope = -(i * s[1] * d + top * (s[2] * d + s[1] * d_slope));
      const Tensor added = factor * s[3], added_slope = factor_slope * s[3] + factor * s[4];
      return {i, d, d_slope, added, added_slope, s[5] + added, s[6] + added_slope};
    };
    const Tensors s = run_while("vt::igamma", going, body, init, where);
    return {s[5], s[6]};
  };
  const Tensor operands[] = {a, x, needed};
  return for_each_element(loop, operands, where);
}

/// The continued fraction of I_x(a, b) B(a, b) x⁻ᵃ (1 − x)⁻ᵇ, for x below the mean; `lead` = a (1 − x) − b x + 1.
Tensor beta_fraction(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& lead, const Tensor& needed, Where where) {
  const FlatFunction loop = [where](Leaves in) -> Tensors {
    const Tensor a = in[0], b = in[1], x = in[2], lead = in[3], needed = in[4];
    const Tensor d = 1.0 / (a * lead / (a + 1.0));
    const Tensors init = {number(0), d, d, d};
    const auto going = [&](Leaves s) -> Tensors { return {logical_and(needed, abs(s[2]) > abs(s[3]) * least_part)}; };
    const auto body = [&](Leaves s) -> Tensors {
      const Tensor m = s[0] + 1.0, below = a + 2.0 * m - 1.0, part = m * (b - m) * x / below;
      const Tensor top = (a + s[0]) * (a + b + s[0]) / below * (x * part);  // not a + m − 1, which would forget a small a
      const Tensor bottom = m + part + (a + m) * (lead + m * (2.0 - x)) / (below + 2.0);
      const Tensor d = 1.0 / (top * s[1] + bottom), added = -(top * s[1] * d) * s[2];
      return {m, d, added, s[3] + added};
    };
    return {run_while("vt::betainc", going, body, init, where)[3]};
  };
  const Tensor operands[] = {a, b, x, lead, needed};
  return for_each_element(loop, operands, where)[0];
}

// --- prefixes --------------------------------------------------------------------------------------------------------

template <std::size_t size>
Tensor fitted(const Tensor& x, const double (&table)[size]) {
  const Tensor u = (x - table[0]) * table[1];
  Tensor sum = table[size - 1];
  for (std::size_t k = size - 1; k-- > 2;) sum = sum * u + table[k];
  return sum;
}
/// Γ(x) / (√(2π) xˣ⁻½ e⁻ˣ) for x ≥ 8½.
Tensor gamma_star(const Tensor& x) { return fitted(1.0 / maximum(x, 8.5), special_tables::gamma_star); }

/// What a + b is short of the sum of both.
Tensor lost_in_sum(const Tensor& a, const Tensor& b, const Tensor& sum) {
  const Tensor t = sum - a;
  return stop_gradient((a - (sum - t)) + (b - t));
}

/// A number as the sum of one of 26 bits and the rest, so that products of the former are exact.
std::pair<Tensor, Tensor> halves(const Tensor& t) {
  const Tensor high = reduce_precision(t, 11, 25);
  return {high, t - high};
}
/// What a · b is short of the true product.
Tensor lost_in_product(const Tensor& a, const Tensor& b, const Tensor& product) {
  const auto [x, x_low] = halves(a);
  const auto [y, y_low] = halves(b);
  return stop_gradient((((x * y - product) + x * y_low) + x_low * y) + x_low * y_low);
}

/// (top / bottom)^exponent: the quotient's rounding, which the power would magnify, is made good.
Tensor power_of_quotient(const Tensor& top, const Tensor& bottom, const Tensor& exponent) {
  const Tensor quotient = top / bottom, product = quotient * bottom, rest = (top - product) - lost_in_product(quotient, bottom, product);
  return pow(quotient, exponent) * (1.0 + stop_gradient(exponent * rest / top));
}

/// t − log(1 + t) for t > −1, given `sum` = 1 + t, of which t near −1 has lost the digits. Up to ½ by the series of the logarithm in
/// r = t/(2 + t): nothing cancels.
Tensor log1p_excess(const Tensor& t, const Tensor& sum) {
  const Tensor near = abs(t) < 0.5, inside = where(near, t, 0.0), r = inside / (2.0 + inside), square = r * r;
  constexpr int terms = 17;
  Tensor series = 1.0 / (2 * terms + 1);
  for (int k = terms - 1; k >= 1; --k) series = series * square + 1.0 / (2 * k + 1);
  return where(near, r * (inside - 2.0 * square * series), t - log(where(near, 1.0, sum)));
}

/// B(a, b) for 0 < a, b: by gamma functions as long as these fit, else by what is left of them beside Stirling's powers.
Tensor beta_positive(const Tensor& a, const Tensor& b) {
  const Tensor p = minimum(a, b), q = maximum(a, b), s = a + b, lost = lost_in_sum(a, b, s);
  const Tensor few = s <= 100.0, s_few = where(few, s, 1.0);
  const Tensor near = gamma(where(few, p, 1.0)) * (gamma(where(few, q, 1.0)) / gamma(s_few)) * (1.0 - stop_gradient(digamma(s_few) * lost));
  const Tensor large = p > 8.5, P = where(large, p, 8.5), Q = where(few, 100.0, q), S = where(few, 100.0, s);
  const Tensor stars = gamma_star(Q) / gamma_star(S);
  const Tensor both =
      std::sqrt(2 * std::numbers::pi) * stars * gamma_star(P) * sqrt(S / (P * Q)) * power_of_quotient(P, S, P) * power_of_quotient(Q, S, Q);
  const Tensor little = where(large, 1.0, p);
  const Tensor one = gamma(little) * stars * pow(S, -little) * exp(little) * power_of_quotient(Q, S, Q - 0.5);
  return where(few, near, where(large, both, one) * (1.0 - lost));  // the exponents of both powers make nearly s
}
/// Its logarithm, also where B is no number any more.
Tensor betaln_positive(const Tensor& a, const Tensor& b) {
  const Tensor p = minimum(a, b), q = maximum(a, b), s = a + b;
  const Tensor few = s <= 100.0, large = p > 8.5, P = where(large, p, 8.5), Q = where(few, 100.0, q), S = where(few, 100.0, s);
  const Tensor near = log(beta_positive(where(few, a, 1.0), where(few, b, 1.0)));
  const Tensor stars = log(gamma_star(Q) / gamma_star(S));
  const Tensor both = P * log(P / S) + Q * log1p(-P / S) + 0.5 * log(2 * std::numbers::pi * (S / (P * Q))) + (log(gamma_star(P)) + stars);
  const Tensor little = where(large, 1.0, p);
  const Tensor one = lgamma(little) + (Q - 0.5) * log1p(-little / S) - little * (log(S) - 1.0) + stars;
  return where(few, near, where(large, both, one));
}

/// xᵃ e⁻ˣ / Γ(a + 1) for a, x > 0.
Tensor gamma_prefix(const Tensor& a, const Tensor& x) {
  const Tensor direct = logical_and(a <= 100.0, x <= 700.0);
  const Tensor u = where(direct, a, 1.0), v = where(direct, x, 1.0);
  const Tensor near = pow(v, u) * exp(-v) / (u * gamma(u));
  // (x/a)ᵃ eᵃ⁻ˣ is e^−aφ with φ = μ − log(1 + μ), μ = (x − a)/a; the factors by themselves where they fit.
  const Tensor A = where(direct, 100.0, a), X = where(direct, 100.0, x), difference = A - X;
  const Tensor fits = abs(difference) < 600.0;
  const Tensor factors = power_of_quotient(where(fits, X, A), A, A) * exp(where(fits, difference, 0.0));
  const Tensor together = exp(-A * log1p_excess(where(fits, 0.0, -difference / A), X / A));
  const Tensor far = where(fits, factors, together) / (sqrt(2 * std::numbers::pi * A) * gamma_star(A));
  return where(direct, near, far);
}

/// 1 − x = mirror + this.
Tensor lost_in_mirror(const Tensor& x, const Tensor& mirror) { return stop_gradient((1.0 - mirror) - x); }
/// b x − a (1 − x), which is 0 at the mean: there the products cancel.
Tensor beyond_mean(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& mirror) {
  const Tensor left = x * b, right = mirror * a;
  return (left - right) + (lost_in_product(x, b, left) - lost_in_product(mirror, a, right) - stop_gradient(lost_in_mirror(x, mirror) * a));
}

/// xᵃ (1 − x)ᵇ / B(a, b) for a, b > 0, 0 < x < 1.
Tensor beta_prefix(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& mirror) {
  const Tensor lost = lost_in_mirror(x, mirror);
  const Tensor direct = logical_or(a + b <= 100.0, minimum(a, b) <= 8.5);
  const Tensor u = where(direct, a, 1.0), v = where(direct, b, 1.0);
  const Tensor near = pow(x, u) * (pow(mirror, v) * (1.0 + v * lost / mirror)) / beta_positive(u, v);
  // (x s/a)ᵃ ((1 − x) s/b)ᵇ with s = a + b: what the bases differ from 1 by is d/a and −d/b.
  const Tensor A = where(direct, 50.0, a), B = where(direct, 51.0, b), S = A + B, d = beyond_mean(A, B, x, mirror);
  const Tensor exponent = A * log1p_excess(d / A, x * S / A) + B * log1p_excess(-d / B, mirror * S / B);
  const Tensor stars = gamma_star(S) / (gamma_star(A) * gamma_star(B));
  return where(direct, near, exp(-exponent) * stars * sqrt(A * B / (2 * std::numbers::pi * S)));
}

// --- the incomplete gamma function -----------------------------------------------------------------------------------

/// Where each form is used, and operands that every form can take.
struct GammaRange {
  Tensor inside, by_series, small, a, x;
};
GammaRange gamma_range(const Tensor& a, const Tensor& x) {
  const Tensor inside = logical_and(logical_and(a > 0.0, a < infinity), logical_and(x > 0.0, x < infinity));
  const Tensor A = where(inside, a, 1.0), X = where(inside, x, 1.0);
  const Tensor small = logical_and(A < 1.0, X <= 1.1);
  return {inside, logical_or(small, X - 1.0 / (3.0 * maximum(X, 1.0)) < A), small, A, X};
}

/// P where the series is used, Q where the fraction is; for small operands Q by itself too.
Tensor incomplete_gamma(const Tensor& a, const Tensor& x, bool upper, Where user) {
  const GammaRange r = gamma_range(a, x);
  const Tensor prefix = gamma_prefix(r.a, r.x);
  const Tensor series = prefix * gamma_series(r.a, r.x, logical_and(r.inside, r.by_series), user)[0];
  const Tensor fraction =
      prefix * r.a *
      gamma_fraction(where(r.by_series, 1.0, r.a), where(r.by_series, 2.0, r.x), logical_and(r.inside, logical_not(r.by_series)), user)[0];
  Tensor result;
  if (upper) {
    // 1 − P = ((Γ(1 + a) − 1) − (xᵃ − 1) − a xᵃ Σ (−x)ⁿ/((a + n) n!)) / Γ(1 + a), of which nothing cancels for small a.
    const Tensor A = where(r.small, r.a, 0.5), X = where(r.small, r.x, 0.5), power = expm1(A * log(X)),
                 near = fitted(A, special_tables::gamma_near_1);
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
  const double at_zero = upper ? 1 : 0, at_infinity = upper ? 0 : 1;
  // On the edges: all mass is at 0 for a = 0, and beyond every x for a = ∞.
  const Tensor edge = where(equal(a, 0.0), where(equal(x, 0.0), nan, at_infinity),
                            where(equal(a, infinity), where(equal(x, infinity), nan, at_zero), where(equal(x, 0.0), at_zero, at_infinity)));
  const Tensor valid = logical_and(a >= 0.0, x >= 0.0);
  return where(r.inside, result, where(valid, edge, nan));
}

/// −(∂P/∂a)/(∂P/∂x); the prefix that both share is not in it.
Tensor sample_slope(const Tensor& a, const Tensor& x, Where user) {
  const GammaRange r = gamma_range(a, x);
  const Tensors series = gamma_series(r.a, r.x, logical_and(r.inside, r.by_series), user);
  const Tensors fraction =
      gamma_fraction(where(r.by_series, 1.0, r.a), where(r.by_series, 2.0, r.x), logical_and(r.inside, logical_not(r.by_series)), user);
  const Tensor factor = log(r.x) - digamma(r.a);
  const Tensor below = -(r.x / r.a) * ((factor - 1.0 / r.a) * series[0] + series[1]);
  const Tensor above = r.x * (factor * fraction[0] + fraction[1]);
  const Tensor edge = where(logical_and(equal(x, 0.0), a > 0.0), 0.0, nan);
  return where(r.inside, where(r.by_series, below, above), edge);
}

Tensor sample_slope_function(Leaves operands, Where where) {
  const FlatFunction f = [where](Leaves in) -> Tensors { return {sample_slope(in[0], in[1], where)}; };
  return by_forward_mode(f, operands, where);
}

/// The density of the gamma distribution.
Tensor gamma_density(const Tensor& a, const Tensor& x) {
  const Tensor inside = logical_and(logical_and(a > 0.0, a < infinity), logical_and(x > 0.0, x < infinity));
  const Tensor A = where(inside, a, 1.0), X = where(inside, x, 1.0);
  const Tensor at_zero = where(a < 1.0, infinity, where(equal(a, 1.0), 1.0, 0.0));
  return where(inside, gamma_prefix(A, X) * (A / X), where(equal(x, 0.0), at_zero, where(isnan(x + a), nan, 0.0)));
}
Tensor gamma_density_function(Leaves operands, Where where) {
  const FlatFunction f = [](Leaves in) -> Tensors { return {gamma_density(in[0], in[1])}; };
  // log x − ψ(a) and (a − 1)/x − 1 times the density
  return with_slopes(
      f, [](std::size_t i, Leaves x, const Tensor& density) { return density * (i == 0 ? log(x[1]) - digamma(x[0]) : (x[0] - 1.0) / x[1] - 1.0); },
      operands, where);
}

Tensor incomplete_gamma_function(const char* name, Operand& a, Operand& x, bool upper) {
  const Composed composed(name, a, x);
  const Where where = user_line(a.where);
  const FlatFunction f = [upper, where](Leaves in) -> Tensors { return {incomplete_gamma(in[0], in[1], upper, where)}; };
  const auto slope = [upper, where](std::size_t i, Leaves x, const Tensor&) {
    const Tensor density = gamma_density_function(x, where);
    const Tensor rising = i == 1 ? density : -(density * sample_slope_function(x, where));
    return upper ? -rising : rising;
  };
  const Shape shape = broadcast_shape(name, std::initializer_list<Tensor>{a.tensor, x.tensor}, where);
  const Tensor operands[] = {broadcast(a.tensor, shape, where), broadcast(x.tensor, shape, where)};
  return composed(with_slopes(f, slope, operands, where));
}

// --- the exponential integrals ---------------------------------------------------------------------------------------

/// For n ≥ 1: up to x = 1 by its series, beyond by the fraction of Γ(1 − n, x) = Eₙ(x) x¹⁻ⁿ.
Tensor exponential_integral(const Tensor& n, const Tensor& x, Where user) {
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
  const Tensor fraction = exp(-at) * gamma_fraction(1.0 - n, at, logical_and(x > 1.0, x < infinity), user)[0];
  const Tensor at_zero = where(n > 1.0, 1.0 / where(n > 1.0, n - 1.0, 1.0), infinity);
  return where(equal(n, 1.0), -expi(-x), where(equal(x, 0.0), at_zero, where(small, series, where(equal(x, infinity), 0.0, fraction))));
}

Tensor exponential_integral_function(Leaves operands, Where user) {
  const FlatFunction f = [user](Leaves in) -> Tensors {
    const Tensor &n = in[0], &x = in[1], valid = logical_and(logical_and(n >= 0.0, equal(n, floor(n))), x >= 0.0), none = equal(n, 0.0);
    const Tensor order = where(logical_and(valid, logical_not(none)), n, 1.0), X = where(valid, x, 1.0);
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

// --- the incomplete beta function ------------------------------------------------------------------------------------

Tensor incomplete_beta(const Tensor& a, const Tensor& b, const Tensor& x, Where user) {
  const auto positive = [](const Tensor& t) { return logical_and(t > 0.0, t < infinity); };
  const Tensor inside = logical_and(logical_and(positive(a), positive(b)), logical_and(x > 0.0, x < 1.0));
  const Tensor A = where(inside, a, 1.0), B = where(inside, b, 1.0), X = where(inside, x, 0.5), mirror = 1.0 - X;
  // From beyond the mean, where 1 − I is not nearly all there is.
  const Tensor beyond =
      logical_and(X > maximum((A + 1.0) / (A + B + 2.0), A / (A + B)), logical_not(logical_and(logical_and(B < 0.25, B < A), mirror > 1e-3)));
  const Tensor d = beyond_mean(A, B, X, mirror), lead = 1.0 - where(beyond, -d, d);
  const Tensor fraction = beta_fraction(where(beyond, B, A), where(beyond, A, B), where(beyond, mirror, X), lead, inside, user);
  const Tensor part = beta_prefix(A, B, X, mirror) * fraction;
  const Tensor edge_a = equal(a, 0.0), edge_b = equal(b, 0.0);
  const Tensor at_zero = where(equal(x, 0.0), 0.0, 1.0);
  const Tensor edge = where(logical_and(edge_a, edge_b), nan, where(edge_a, 1.0, where(edge_b, 0.0, at_zero)));
  const Tensor ends = where(equal(x, 0.0), 0.0, where(equal(x, 1.0), 1.0, where(logical_and(a < infinity, b < infinity), edge, nan)));
  const Tensor valid = logical_and(logical_and(a >= 0.0, b >= 0.0), logical_and(x >= 0.0, x <= 1.0));
  return where(inside, where(beyond, 1.0 - part, part), where(logical_and(valid, logical_not(logical_and(edge_a, edge_b))), ends, nan));
}

/// The density of the beta distribution.
Tensor beta_density(const Tensor& a, const Tensor& b, const Tensor& x) {
  const Tensor inside = logical_and(x > 0.0, x < 1.0), X = where(inside, x, 0.5), mirror = 1.0 - X;
  return where(inside, beta_prefix(a, b, X, mirror) / (X * mirror), where(logical_or(equal(x, 0.0), equal(x, 1.0)), 0.0, nan));
}

Tensor incomplete_beta_function(Leaves operands, Where where) {
  const FlatFunction f = [where](Leaves in) -> Tensors { return {incomplete_beta(in[0], in[1], in[2], where)}; };
  const FlatFunction density = [](Leaves in) -> Tensors { return {beta_density(in[0], in[1], in[2])}; };
  const auto slope = [f, density, where](std::size_t i, Leaves x, const Tensor&) {
    return by_forward_mode(i == 2 ? density : partial(f, i, where), x, where);
  };
  return with_slopes(f, slope, operands, where);
}

// --- the beta function -----------------------------------------------------------------------------------------------

/// `positive` where both operands are, else `otherwise`, with slopes that are ψ(a) − ψ(a + b) times `factor` of the result.
Tensor of_beta(const char* name, Operand& a, Operand& b, Tensor (*positive)(const Tensor&, const Tensor&),
               Tensor (*otherwise)(const Tensor&, const Tensor&), bool logarithm) {
  const Composed composed(name, a, b);
  const Where user = user_line(a.where);
  const FlatFunction f = [positive, otherwise](Leaves in) -> Tensors {
    const Tensor both = logical_and(in[0] > 0.0, in[1] > 0.0), finite = logical_and(both, logical_and(in[0] < infinity, in[1] < infinity));
    return {where(finite, positive(where(finite, in[0], 1.0), where(finite, in[1], 1.0)),
                  otherwise(where(both, 1.0, in[0]), where(both, 1.0, in[1])) + where(both, nan, 0.0))};
  };
  const auto slope = [logarithm](std::size_t i, Leaves x, const Tensor& value) {
    const Tensor relative = digamma(x[i]) - digamma(x[0] + x[1]);
    return logarithm ? relative : relative * value;
  };
  const Shape shape = broadcast_shape(name, std::initializer_list<Tensor>{a.tensor, b.tensor}, user);
  const Tensor operands[] = {broadcast(a.tensor, shape, user), broadcast(b.tensor, shape, user)};
  return composed(with_slopes(f, slope, operands, user));
}

}  // namespace vt::detail::incomplete

namespace vt {

namespace parts_of_gamma = detail::incomplete;
Tensor igamma(Operand a, Operand x) { return parts_of_gamma::incomplete_gamma_function("igamma", a, x, false); }
Tensor igammac(Operand a, Operand x) { return parts_of_gamma::incomplete_gamma_function("igammac", a, x, true); }

Tensor beta(Operand a, Operand b) {
  const auto signed_quotient = [](const Tensor& x, const Tensor& y) { return gamma(x) * gamma(y) / gamma(x + y); };
  return parts_of_gamma::of_beta("beta", a, b, parts_of_gamma::beta_positive, signed_quotient, false);
}
Tensor betaln(Operand a, Operand b) {
  const auto difference = [](const Tensor& x, const Tensor& y) { return lgamma(x) + lgamma(y) - lgamma(x + y); };
  return parts_of_gamma::of_beta("betaln", a, b, parts_of_gamma::betaln_positive, difference, true);
}

Tensor random_gamma_grad(Operand a, Operand x) {
  const detail::elementwise::Composed composed("random_gamma_grad", a, x);
  const Where where = detail::user_line(a.where);
  const Shape shape = detail::broadcast_shape("random_gamma_grad", std::initializer_list<Tensor>{a.tensor, x.tensor}, where);
  const Tensor operands[] = {detail::broadcast(a.tensor, shape, where), detail::broadcast(x.tensor, shape, where)};
  return composed(parts_of_gamma::sample_slope_function(operands, where));
}

Tensor expn(Operand n, Operand x) {
  const detail::elementwise::Composed composed("expn", n, x);
  const Where where = detail::user_line(n.where);
  const Shape shape = detail::broadcast_shape("expn", std::initializer_list<Tensor>{n.tensor, x.tensor}, where);
  const Tensor operands[] = {detail::broadcast(n.tensor, shape, where), detail::broadcast(x.tensor, shape, where)};
  return composed(parts_of_gamma::exponential_integral_function(operands, where));
}

Tensor betainc(Operand a, Operand b, Operand x) {
  const detail::elementwise::Composed composed("betainc", a, b, x);
  const Where where = detail::user_line(a.where);
  const Shape shape = detail::broadcast_shape("betainc", std::initializer_list<Tensor>{a.tensor, b.tensor, x.tensor}, where);
  const Tensor operands[] = {detail::broadcast(a.tensor, shape, where), detail::broadcast(b.tensor, shape, where),
                             detail::broadcast(x.tensor, shape, where)};
  return composed(parts_of_gamma::incomplete_beta_function(operands, where));
}

}  // namespace vt
