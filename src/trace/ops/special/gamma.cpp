// beta, betaln and the incomplete gamma and beta functions: prefactors computed without
// cancellation, and loops in which every element stops on its own.
#include <vt/special.hpp>

#include <limits>
#include <numbers>

#include "../../numerics/special_math.hpp"
#include "../support/composed.hpp"
#include "../support/element_functions.hpp"
#include "formulas.hpp"

namespace vt::detail::incomplete {

using elementwise::Composed;
using namespace element_functions;
using element_functions::Leaves;  // not the one around
using namespace formulas;
inline constexpr double infinity = std::numeric_limits<double>::infinity(),
                        nan = std::numeric_limits<double>::quiet_NaN();

constexpr double least_normal = std::numeric_limits<double>::min();
/// Terms below this part of the sum are its last digit; the derivatives' terms are larger by a
/// logarithm.
inline constexpr double least_part = 0x1p-62, least_part_of_slopes = 0x1p-80;

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

/// What a loop is run for: its value, or derivatives of whatever order.
enum class Until { value, slopes };

/// The continued fraction of I_x(a, b) B(a, b) x⁻ᵃ (1 − x)⁻ᵇ, for x below the mean;
/// `lead` = a (1 − x) − b x + 1. At whole b the factor b − m ends it, but not its derivatives by b:
/// these go on until what is added would be small with 1 in place of that factor.
Tensor beta_fraction(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& lead,
                     const Tensor& needed, Until until, CallSite where) {
  const FlatFunction loop = [until, where](Leaves in) -> Tensors {
    const Tensor a = in[0], b = in[1], x = in[2], lead = in[3], needed = in[4];
    const Tensor d = 1.0 / (a * lead / (a + 1.0));
    // m, the denominator's inverse, what was added last, the sum, and a bound of the second last
    Tensors init = {number(0), d, d, d};
    if (until == Until::slopes) init.push_back(abs(d));
    const auto going = [&](Leaves s) -> Tensors {
      const Tensor size = abs(s[3]);
      return {logical_and(needed, until == Until::slopes ? s[4] > size * least_part_of_slopes
                                                         : abs(s[2]) > size * least_part)};
    };
    const auto body = [&](Leaves s) -> Tensors {
      const Tensor m = s[0] + 1.0, below = a + 2.0 * m - 1.0, part = m * (b - m) * x / below;
      // not a + m − 1, which would forget a small a
      const Tensor front = (a + s[0]) * (a + b + s[0]) / below, top = front * (x * part);
      const Tensor bottom = m + part + (a + m) * (lead + m * (2.0 - x)) / (below + 2.0);
      const Tensor d = 1.0 / (top * s[1] + bottom), added = -(top * s[1] * d) * s[2];
      Tensors next = {m, d, added, s[3] + added};
      if (until == Until::slopes) {
        const Tensor bound = front * (x * (m * maximum(abs(b - m), 1.0) * x / below));
        next.push_back(stop_gradient(abs(bound * s[1] * d) * s[4]));
      }
      return next;
    };
    return {run_while("vt::betainc", going, body, init, where)[3]};
  };
  const Tensor operands[] = {a, b, x, lead, needed};
  return for_each_element(loop, operands, where)[0];
}

// --- prefixes ------------------------------------------------------------------------------------

template <std::size_t size>
Tensor fitted(const Tensor& x, const double (&table)[size]) {
  const Tensor u = (x - table[0]) * table[1];
  Tensor sum = table[size - 1];
  for (std::size_t k = size - 1; k-- > 2;) sum = sum * u + table[k];
  return sum;
}
/// Γ(x) / (√(2π) xˣ⁻½ e⁻ˣ) for x ≥ 8½.
Tensor gamma_star(const Tensor& x) {
  return fitted(1.0 / maximum(x, 8.5), special_tables::gamma_star);
}

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

/// ((top + lost) / bottom)^exponent as a power and what the quotient's rounding, which that
/// magnifies, adds to its logarithm.
std::pair<Tensor, Tensor> parts_of_power(const Tensor& top, const Tensor& bottom,
                                         const Tensor& exponent, const Tensor& lost) {
  const Tensor quotient = top / bottom, product = quotient * bottom,
               rest = (top - product) - lost_in_product(quotient, bottom, product) + lost;
  return {pow(quotient, exponent), stop_gradient(exponent * rest / top)};
}
/// The same as one number, where the exponent is far below 2^52.
Tensor power_of_quotient(const Tensor& top, const Tensor& bottom, const Tensor& exponent,
                         const Tensor& lost = number(0)) {
  const auto [power, added] = parts_of_power(top, bottom, exponent, lost);
  return power * (1.0 + added);
}

/// A product whose factors are numbers where it itself need not be one.
struct Product {
  Tensor first, second;
};
/// B(a, b) for 0 < a, b: by gamma functions as long as these fit, else by what is left of them
/// beside Stirling's powers.
Product beta_positive(const Tensor& a, const Tensor& b) {
  const Tensor p = minimum(a, b), q = maximum(a, b), s = a + b, lost = lost_in_sum(a, b, s);
  const Tensor few = s <= 100.0, s_few = where(few, s, 1.0);
  const Tensor near = gamma(where(few, p, 1.0)) * (gamma(where(few, q, 1.0)) / gamma(s_few)) *
                      (1.0 - stop_gradient(digamma(s_few) * lost));
  const Tensor large = p > 8.5, P = where(large, p, 8.5), Q = where(few, 100.0, q),
               S = where(few, 100.0, s);
  const Tensor stars = gamma_star(Q) / gamma_star(S);
  const Tensor both = std::sqrt(2 * std::numbers::pi) * stars * gamma_star(P) * sqrt(S / (P * Q)) *
                      power_of_quotient(P, S, P);
  const Tensor little = where(large, 1.0, p);
  const Tensor one = gamma(little) * stars * pow(S, -little) * exp(little);
  // The exponents of both powers make nearly s; q may be so large that what is lost is a number of
  // some size.
  const auto [power, added] = parts_of_power(Q, S, where(large, Q, Q - 0.5), number(0));
  return {where(few, near, where(large, both, one)),
          where(few, 1.0, power * exp(where(few, 0.0, added - lost)))};
}
Tensor whole(const Product& p) { return p.first * p.second; }
/// Its logarithm, also where B is no number any more.
Tensor betaln_positive(const Tensor& a, const Tensor& b) {
  const Tensor p = minimum(a, b), q = maximum(a, b), s = a + b;
  const Tensor few = s <= 100.0, large = p > 8.5, P = where(large, p, 8.5),
               Q = where(few, 100.0, q), S = where(few, 100.0, s);
  const Tensor near = log(beta_positive(where(few, a, 1.0), where(few, b, 1.0)).first);
  const Tensor stars = log(gamma_star(Q) / gamma_star(S));
  const Tensor both = P * log(P / S) + Q * log1p(-P / S) +
                      0.5 * log(2 * std::numbers::pi * (S / (P * Q))) +
                      (log(gamma_star(P)) + stars);
  const Tensor little = where(large, 1.0, p);
  const Tensor one =
      lgamma(little) + (Q - 0.5) * log1p(-little / S) - little * (log(S) - 1.0) + stars;
  return where(few, near, where(large, both, one));
}

/// A number with what it is short of the true one.
struct Pair {
  Tensor value, lost;
};
Pair sum_of(const Tensor& a, const Tensor& b) {
  const Tensor sum = a + b;
  return {sum, lost_in_sum(a, b, sum)};
}

/// a φ with φ = μ − log(1 + μ), μ = d/a between −½ and 1. That is d t − 2 a (t³/3 + t⁵/5 + …) with
/// t = d/(2 a + d). It is an exponent, up to 745, which magnifies its rounding errors: the first
/// three terms are taken in pieces whose products are exact.
Pair exponent_of_excess(const Tensor& a, const Tensor& d) {
  const Pair s = sum_of(2.0 * a, d);
  const auto [d_high, d_low] = halves(d);
  const Tensor s_high = halves(s.value).first, s_low = (s.value - s_high) + s.lost;
  const Tensor t = d / s.value, t_high = reduce_precision(t, 11, 9),
               t_low = ((d - t_high * s_high) - t_high * s_low) / s.value;
  const Tensor square = t_high * t_high, cube = square * t_high,
               a_high = reduce_precision(a, 11, 21), a_low = a - a_high;
  const Tensor first = d_high * t_high, first_rest = d_low * t_high + d * t_low;
  const Tensor twice = 2.0 * (a_high * cube), second = halves(twice / 3.0).first;
  const Tensor second_rest = (twice - 3.0 * second) / 3.0 + 2.0 / 3.0 * (a_low * cube) +
                             2.0 * a * (t_low * (square + t_low * (t_high + t_low / 3.0)));
  const Tensor z = t * t, mixed = t * t_high, third = 2.0 * (a * (cube * square)) / 5.0;
  constexpr int terms = 16;
  Tensor series = number(1.0 / (2 * terms + 5));
  for (int k = terms + 2; k-- > 3;) series = series * z + 1.0 / (2 * k + 1);
  const Tensor third_rest = 2.0 * a *
                            (t_low * (z * (z + mixed + square) + square * (mixed + square)) / 5.0 +
                             t * (z * z * z) * series);
  const Pair high = sum_of(first, -second);
  return sum_of(high.value, (first_rest - (third + (second_rest + third_rest))) + high.lost);
}
Tensor exponential_of_less(const Pair& exponent) {
  return exp(-exponent.value) * (1.0 - exponent.lost);
}

/// xᵃ e⁻ˣ / Γ(a + 1) for a, x > 0.
Tensor gamma_prefix(const Tensor& a, const Tensor& x) {
  // Powers and exponentials are taken in parts, which fit where the whole does not; where they do
  // not either, the result is 0.
  const Tensor direct = a <= 100.0;
  const Tensor u = where(direct, maximum(a, 1e-300), 1.0),
               v = where(direct, minimum(x, number(4000)), 1.0);
  const Tensor half = pow(v, 0.5 * u) * exp(-0.5 * v);
  const Tensor low = half * half / (u * gamma(u));
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

/// 1 − x = mirror + this.
Tensor lost_in_mirror(const Tensor& x, const Tensor& mirror) {
  return stop_gradient((1.0 - mirror) - x);
}
/// b x − a (1 − x), which is 0 at the mean: there the products cancel.
Pair beyond_mean(const Tensor& a, const Tensor& b, const Tensor& x, const Tensor& mirror) {
  const Tensor left = x * b, right = mirror * a;
  const Pair difference = sum_of(left, -right);
  const Tensor lost = lost_in_product(x, b, left) - lost_in_product(mirror, a, right) -
                      stop_gradient(lost_in_mirror(x, mirror) * a);
  return sum_of(difference.value, difference.lost + lost);
}

/// xᵃ (1 − x)ᵇ / B(a, b) for a, b > 0, 0 < x < 1.
Tensor beta_prefix_value(const Tensor& a, const Tensor& b, const Tensor& x) {
  const Tensor mirror = 1.0 - x, lost = lost_in_mirror(x, mirror);
  const Tensor direct = logical_or(a + b <= 100.0, minimum(a, b) <= 8.5);
  const Tensor u = where(direct, a, 1.0), v = where(direct, b, 1.0);
  const Tensor low =
      pow(x, u) * (pow(mirror, v) * (1.0 + v * lost / mirror)) / whole(beta_positive(u, v));
  // (x s/a)ᵃ ((1 − x) s/b)ᵇ with s = a + b: what the bases differ from 1 by is d/a and −d/b.
  const Tensor A = where(direct, 50.0, a), B = where(direct, 51.0, b);
  const Pair S = sum_of(A, B), d = beyond_mean(A, B, x, mirror);
  const Tensor size = d.value, near = logical_and(logical_and(2.0 * size >= -A, size <= A),
                                                  logical_and(2.0 * size <= B, size >= -B));
  const Tensor D = where(near, size, 0.0);
  const Pair first = exponent_of_excess(A, D), second = exponent_of_excess(B, -D),
             both = sum_of(first.value, second.value);
  const Tensor rest =
      first.lost + second.lost + both.lost + where(near, d.lost, 0.0) * (D / (A + D) + D / (B - D));
  // Far from there in eighths, which fit where the whole does not; where they do not either, the
  // result is 0.
  const Tensor top = x * S.value, top_lost = lost_in_product(x, S.value, top) + x * S.lost;
  const Tensor other = mirror * S.value, other_lost = lost_in_product(mirror, S.value, other) +
                                                      mirror * S.lost + lost * S.value;
  const Tensor eighth = power_of_quotient(top, A, 0.125 * A, top_lost),
               ninth = power_of_quotient(other, B, 0.125 * B, other_lost);
  const Tensor fits = logical_and(logical_and(eighth > 0.0, eighth < infinity),
                                  logical_and(ninth > 0.0, ninth < infinity));
  const Tensor part = where(fits, eighth, 0.0) * where(fits, ninth, 0.0), square = part * part,
               fourth = square * square;
  const Tensor high = where(near, exponential_of_less({both.value, rest}), fourth * fourth);
  const Tensor stars = gamma_star(S.value) / (gamma_star(A) * gamma_star(B));
  return where(direct, low, high * stars * sqrt(A * (B / (2 * std::numbers::pi * S.value))));
}
/// The slope of its logarithm by a or b.
Tensor log_slope_of_beta(std::size_t i, Leaves in) {
  return digamma(in[0] + in[1]) - digamma(in[i]) + (i == 0 ? log(in[2]) : log1p(-in[2]));
}
Tensor beta_prefix(const Tensor& a, const Tensor& b, const Tensor& x, CallSite user) {
  const FlatFunction f = [](Leaves in) -> Tensors {
    return {beta_prefix_value(in[0], in[1], in[2])};
  };
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    const Tensor &a = in[0], &b = in[1], &x = in[2];
    return value * (i == 2 ? a / x - b / (1.0 - x) : log_slope_of_beta(i, in));
  };
  const Tensor operands[] = {a, b, x};
  return with_slopes(f, slope, operands, user);
}

// --- the incomplete gamma function ---------------------------------------------------------------

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
                      (erfcx(abs(terms.eta) * root) +
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
  const Tensor edge = where(zero, (entr(X) + X * digamma(A + 1.0)) / A, nan * (a + x));
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

/// How many derivatives densities have at the ends of their range.
inline constexpr int end_derivatives = 5;

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

Tensor incomplete_gamma_function(const char* name, Operand& a, Operand& x, bool upper) {
  const Composed composed(name, a, x);
  const CallSite where = user_line(a.where);
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
  const Shape shape =
      broadcast_shape(name, std::initializer_list<Tensor>{a.tensor, x.tensor}, where);
  const Tensor operands[] = {broadcast(a.tensor, shape, where), broadcast(x.tensor, shape, where)};
  return composed(with_slopes(f, slope, operands, where));
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
  return where(equal(n, 1.0), -expi(-x),
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

// --- the incomplete beta function ----------------------------------------------------------------

/// The incomplete beta function or its density, xᵃ⁻¹ (1 − x)ᵇ⁻¹ / B(a, b), at x = 0, as a product
/// whose derivatives are right there, as for the gamma distribution.
enum class Form { integral, density };
Tensor beta_at_zero(const Tensor& a, const Tensor& b, const Tensor& x, Form form) {
  const bool integral = form == Form::integral;
  const Tensor order = stop_gradient(a);
  Tensor term = number(1), sum = integral ? 1.0 / order : number(1), factor = b;
  for (int n = 1; n <= end_derivatives; ++n) {
    const auto k = static_cast<double>(n);
    term = term * ((k - b) / k) * x;
    sum = sum + (integral ? term / (order + k) : term);
    factor = where(order > k + 0.5, factor * (b + k) * (1.0 / k), factor);
  }
  return pow(x, integral ? order : order - 1.0) * sum * factor;
}

Tensor incomplete_beta(const Tensor& a, const Tensor& b, const Tensor& x, Until until,
                       CallSite user) {
  const auto positive = [](const Tensor& t) { return logical_and(t > 0.0, t < infinity); };
  const Tensor inside =
      logical_and(logical_and(positive(a), positive(b)), logical_and(x > 0.0, x < 1.0));
  const Tensor A = where(inside, a, 1.0), B = where(inside, b, 1.0), X = where(inside, x, 0.5),
               mirror = 1.0 - X;
  // From beyond the mean, where 1 − I is not nearly all there is.
  const Tensor beyond =
      logical_and(X > maximum((A + 1.0) / (A + B + 2.0), A / (A + B)),
                  logical_not(logical_and(logical_and(B < 0.25, B < A), mirror > 1e-3)));
  const Tensor d = beyond_mean(A, B, X, mirror).value, lead = 1.0 - where(beyond, -d, d);
  const Tensor fraction = beta_fraction(where(beyond, B, A), where(beyond, A, B),
                                        where(beyond, mirror, X), lead, inside, until, user);
  const Tensor part = beta_prefix(A, B, X, user) * fraction;
  const Tensor edge_a = equal(a, 0.0), edge_b = equal(b, 0.0);
  const Tensor at_zero = where(equal(x, 0.0), 0.0, 1.0);
  const Tensor edge =
      where(logical_and(edge_a, edge_b), nan, where(edge_a, 1.0, where(edge_b, 0.0, at_zero)));
  const Tensor ends =
      where(equal(x, 0.0), 0.0,
            where(equal(x, 1.0), 1.0, where(logical_and(a < infinity, b < infinity), edge, nan)));
  const Tensor valid =
      logical_and(logical_and(a >= 0.0, b >= 0.0), logical_and(x >= 0.0, x <= 1.0));
  const Tensor known = logical_and(valid, logical_not(logical_and(edge_a, edge_b)));
  const Tensor result = where(inside, where(beyond, 1.0 - part, part), where(known, ends, nan));
  if (until == Until::value) return result;
  // What derivatives need at the ends, and NaN to all orders outside.
  const Tensor left = equal(x, 0.0), at_end = logical_and(known, logical_or(left, equal(x, 1.0)));
  const Tensor distance = where(at_end, where(left, x, 1.0 - x), 1.0);
  const Tensor from_end = beta_at_zero(where(at_end, where(left, a, b), 1.0), where(left, b, a),
                                       distance, Form::integral);
  return where(at_end, where(left, from_end, 1.0 - from_end), result) * where(valid, 1.0, nan);
}

/// The density of the beta distribution.
Tensor beta_density(const Tensor& a, const Tensor& b, const Tensor& x, CallSite user) {
  const Tensor inside = logical_and(x > 0.0, x < 1.0);
  const Tensor left = equal(x, 0.0), end = logical_or(left, equal(x, 1.0));
  const FlatFunction f = [](Leaves in) -> Tensors {
    return {beta_prefix_value(in[0], in[1], in[2]) / (in[2] * (1.0 - in[2]))};
  };
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    const Tensor &a = in[0], &b = in[1], &x = in[2];
    return value * (i == 2 ? (a - 1.0) / x - (b - 1.0) / (1.0 - x) : log_slope_of_beta(i, in));
  };
  const Tensor operands[] = {a, b, where(inside, x, 0.5)};
  const Tensor at_end = beta_at_zero(where(end, where(left, a, b), 2.0), where(left, b, a),
                                     where(end, where(left, x, 1.0 - x), 1.0), Form::density);
  // NaN to all orders outside
  const Tensor valid = logical_and(logical_and(a >= 0.0, b >= 0.0), logical_or(inside, end));
  return where(inside, with_slopes(f, slope, operands, user), at_end) * where(valid, 1.0, nan);
}

Tensor incomplete_beta_function(Leaves operands, CallSite where) {
  const auto by = [where](Until until) -> FlatFunction {
    return [until, where](Leaves in) -> Tensors {
      return {incomplete_beta(in[0], in[1], in[2], until, where)};
    };
  };
  const FlatFunction f = by(Until::value), further = by(Until::slopes);
  const FlatFunction density = [where](Leaves in) -> Tensors {
    return {beta_density(in[0], in[1], in[2], where)};
  };
  const auto slope = [further, density, where](std::size_t i, Leaves x, const Tensor&) {
    return by_forward_mode(i == 2 ? density : partial(further, i, where), x, where);
  };
  return with_slopes(f, slope, operands, where);
}

// --- the beta function, binomials and quotients of gamma functions -------------------------------

/// The sine or cosine of π (x + lost).
Tensor of_turns(Tensor (*function)(Operand), const Tensor& x, const Tensor& lost) {
  const Tensor nearest = stop_gradient(round(x));
  const Tensor size = function(std::numbers::pi * ((x - nearest) + lost));
  return where(equal(mod(nearest, 2.0), 0.0), size, -size);
}
Tensor sine_of_turns(const Tensor& x, const Tensor& lost) { return of_turns(sin, x, lost); }
Tensor cosine_of_turns(const Tensor& x) { return of_turns(cos, x, number(0)); }
Tensor is_pole(const Tensor& x) { return logical_and(x <= 0.0, equal(x - floor(x), 0.0)); }
/// ψ(a + b) − ψ(a) for a > 0, b ≥ 0, which may agree in nearly all digits: eight steps up, and the
/// difference of what the asymptotic series are from there on, term by term.
Tensor rise_of_digamma(const Tensor& a, const Tensor& b) {
  Tensor steps = b / (a + b) / a;
  for (int k = 1; k < 8; ++k) {
    const Tensor at = a + static_cast<double>(k);
    steps = steps + b / (at * (at + b));
  }
  constexpr double terms[] = {1. / 12,  -1. / 120,     1. / 252, -1. / 240,
                              1. / 132, -691. / 32760, 1. / 12,  -3617. / 8160};
  const Tensor u = 1.0 / (a + 8.0), v = 1.0 / (a + 8.0 + b), step = b * u * v;
  const Tensor z = u * u, w = v * v, first = step * (u + v);  // z − w
  Tensor difference = first, power = w, tail = terms[0] * first;
  for (int k = 1; k < 8; ++k) {
    difference = z * difference + power * first;
    power = power * w;
    tail = tail + terms[k] * difference;
  }
  return steps + (log1p(b * u) + (0.5 * step + tail));
}
/// ψ(x + n) − ψ(x).
Tensor difference_of_digamma(const Tensor& x, const Tensor& n, const Tensor& end) {
  const Tensor up = n >= 0.0, positive = logical_and(x > 0.0, end > 0.0);
  const Tensor rise = rise_of_digamma(where(positive, where(up, x, end), 1.0),
                                      where(positive, where(up, n, -n), 1.0));
  return where(positive, where(up, rise, -rise),
               digamma(where(positive, 1.0, end)) - digamma(where(positive, 1.0, x)));
}

/// What B(p, q) changes by, as a part of it, where its operands are off by these.
Tensor change_of_beta(const Tensor& p, const Tensor& q, const Tensor& p_off, const Tensor& q_off) {
  const Tensor all = digamma(p + q);
  return (digamma(p) - all) * p_off + (digamma(q) - all) * q_off;
}

/// front · B(p, q), or front / B(p, q) where `inverse`.
struct Reflected {
  Tensor front, p, q, inverse, change;
  Tensor value() const {
    const Product beta = beta_positive(p, q);
    return where(inverse, front / beta.first / beta.second * (1.0 - change),
                 front * beta.first * beta.second * (1.0 + change));
  }
  Tensor logarithm() const {
    const Product beta = beta_positive(p, q);
    const Tensor size = log(beta.first) + log(beta.second) + change;
    return log(abs(front)) + where(inverse, -size, size);
  }
};

/// Whether a result has the factor sin(π t) that is 0 at a pole of Γ(t), or π in its place.
enum class Sine { kept, left_out };

/// B(a, b) where a or b is negative: Γ reflected where its operand is. NaN at the poles of Γ but
/// ±0. Without the sine of a + b, which must be below ½ then, Γ(a) Γ(b) Γ(1 − a − b).
Reflected reflected_beta(const Tensor& x, const Tensor& y, Sine sine = Sine::kept) {
  const Tensor a = minimum(x, y), b = maximum(x, y), s = a + b, lost = lost_in_sum(a, b, s);
  const Tensor both = b <= 0.0, above = s > 0.0, inverse = logical_or(both, above);
  const auto positive = [](const Tensor& t) { return maximum(t, least_normal); };
  const Tensor p = where(inverse, -a, b), q = where(both, -b, where(above, s, -s));
  const Tensor q_off = where(both, 0.0, where(above, lost, -lost));
  const Tensor sine_a = sine_of_turns(a, number(0)),
               sine_b = sine_of_turns(where(both, b, 0.5), number(0));
  const Tensor pi = number(std::numbers::pi),
               sine_s = sine == Sine::kept ? sine_of_turns(s, lost) : pi,
               size = sine == Sine::kept ? s : where(equal(s, 0.0), -least_normal, s);
  Tensor front_above = -(pi / a) / sine_a;
  if (sine == Sine::left_out)
    front_above = front_above * (pi / sin(pi * where(above, minimum(s, number(0.5)), 0.5)));
  const Tensor front = where(both, -(pi * sine_s * (size / a) / b) / (sine_a * sine_b),
                             where(above, front_above, size / a * (sine_s / sine_a)));
  const auto negative_pole = [](const Tensor& t) { return logical_and(t < 0.0, is_pole(t)); };
  const Tensor zero = logical_or(equal(x, 0.0), equal(y, 0.0)),
               poles = logical_or(negative_pole(a), negative_pole(b));
  return {where(poles, nan, where(zero, 1.0 / x + 1.0 / y, front)), where(zero, 1.0, positive(p)),
          where(zero, 1.0, positive(q)), logical_and(inverse, logical_not(zero)),
          where(zero, 0.0, (digamma(positive(q)) - digamma(positive(p) + positive(q))) * q_off)};
}

/// Γ(n + 1) / (Γ(k + 1) Γ(n − k + 1)) by B(k + 1, n − k + 1), or by the beta function that is left
/// when the negative ones of these are reflected.
Tensor binomial(const Tensor& n, const Tensor& k) {
  const Tensor rest = n - k, lost = lost_in_sum(n, -k, rest),
               inside = logical_and(k > -1.0, rest > -1.0);
  // y is the larger one of both, which either may be rest.
  const Tensor k_larger = k >= rest, y = where(k_larger, k, rest), z = where(k_larger, rest, k);
  const Tensor y_off = where(k_larger, 0.0, lost), z_off = where(k_larger, lost, 0.0);
  const Tensor one = n >= 0.0, both = y < 0.0,
               inverse = logical_or(inside, logical_not(logical_or(one, both)));
  const Tensor a = k + 1.0, b = rest + 1.0, c = n + 1.0;
  const Tensor p = where(inside, a, where(inverse, y, -z)),
               q = where(inside, b, where(both, -y, abs(n)));
  const Tensor p_off = where(inside, (k - a) + 1.0, where(inverse, y_off, -z_off));
  const Tensor q_off = where(inside, ((rest - b) + 1.0) + lost, where(both, -y_off, 0.0));
  // limits at 0 are those close by
  const auto positive = [](const Tensor& t) { return maximum(t, least_normal); };
  const Tensor P = positive(p), Q = positive(q);
  const Tensor sine_z = sine_of_turns(z, z_off), sine_y = sine_of_turns(y, y_off);
  const Tensor sine_n = sine_of_turns(where(one, 0.5, n), number(0)), pi = number(std::numbers::pi);
  const Tensor outside = where(both, -(sine_z * (sine_y / pi) / sine_n),
                               where(one, -(Q * (sine_z / y) / pi), sine_z / sine_n / P));
  const Tensor front = where(inside, (1.0 - ((n - c) + 1.0) / c) / c, outside);
  const Reflected result{front, P, Q, inverse, change_of_beta(P, Q, p_off, q_off)};
  const Tensor none = logical_and(logical_not(inside), logical_or(is_pole(y), is_pole(z)));
  const Tensor value =
      where(logical_and(n < 0.0, is_pole(n)), nan,
            where(logical_and(none, logical_not(equal(y, 0.0))), 0.0, result.value()));
  const Tensor whole_numbers = logical_and(equal(n - floor(n), 0.0), equal(k - floor(k), 0.0));
  return where(isnan(n + k), nan,
               where(logical_and(whole_numbers, abs(value) < 0x1p50), round(value), value));
}

/// Γ(x + n) / Γ(x). Without the sine of x, which must be below ½ then, Γ(x + n) Γ(1 − x).
Tensor rising_factorial(const Tensor& x, const Tensor& n, Sine sine_of_x = Sine::kept) {
  const Tensor end = x + n, lost = lost_in_sum(x, n, end), up = n > 0.0;
  const Tensor pole = is_pole(x), end_pole = logical_and(is_pole(end), equal(lost, 0.0)),
               poles = logical_and(pole, end_pole);
  const Tensor left = x <= 0.0, end_left = end <= 0.0, both = logical_and(left, end_left),
               crossing = logical_xor(left, end_left);

  // Γ(low + gap) / Γ(low) of positive numbers, or its inverse; where x and x + n are negative both
  // are reflected.
  const Tensor bottom = where(both, where(poles, 1.0, 0.0) - end, x),
               top = where(both, where(poles, 1.0, 0.0) - x, end);
  const Tensor low = where(crossing, 1.0, maximum(where(up, bottom, top), least_normal));
  const Tensor gap = where(crossing, 1.0, maximum(abs(n), least_normal)), many = gap > 170.0,
               few_gap = where(many, 1.0, gap);
  const Product beta = beta_positive(low, few_gap);
  const Tensor gaps = gamma(few_gap),
               few = where(up, gaps / beta.first / beta.second, beta.first * beta.second / gaps);
  // Where Γ(gap) is no number: by Stirling's powers in quarters. Only for small `low` the result
  // may be one.
  const Tensor from = minimum(low, number(3)), much = where(many, minimum(gap, number(500)), 170.0),
               at = from + much;
  const Tensor quarter = pow(at, 0.25 * at - 0.125), base = gamma(from),
               log_slope = log(at) - 0.5 / at;
  const Tensor start = quarter * exp(-at) *
                       (std::sqrt(2 * std::numbers::pi) * gamma_star(at) *
                        (1.0 + log_slope * lost_in_sum(from, much, at)));
  const Tensor great = where(up, start / base * quarter * quarter * quarter,
                             base / start / quarter / quarter / quarter);
  const bool kept = sine_of_x == Sine::kept;
  // −x Γ(−x) is a number at 0 too.
  const Tensor below_zero = kept ? x : where(equal(x, 0.0), -least_normal, x);
  const Tensor pi = number(std::numbers::pi), sine_x = kept ? sine_of_turns(x, number(0)) : pi,
               right = kept ? number(1) : pi / sin(pi * where(left, 0.5, minimum(x, number(0.5))));
  const Tensor front = where(both,
                             where(poles, where(equal(mod(n, 2.0), 0.0), 1.0, -1.0),
                                   below_zero / end * (sine_x / sine_of_turns(end, lost))),
                             right);

  // One of both negative: that one is reflected.
  const Tensor a = where(crossing, where(left, end, -end), 1.0),
               b = where(crossing, where(left, -below_zero, x), 1.0);
  // Γ(a) = (a − 1) Γ(a − 1), which may be no number
  const Tensor a_large = a > 100.0, a_factor = where(a_large, a - 1.0, 1.0);
  const Tensor gamma_a = gamma(where(a_large, a - 1.0, a)), gamma_b = gamma(b),
               sine_end = sine_of_turns(where(left, 0.5, end), where(left, 0.0, lost));
  const Tensor across =
      where(left, -(below_zero * sine_x) / std::numbers::pi * gamma_b * gamma_a * a_factor,
            -(std::numbers::pi / (end * sine_end)) / gamma_a / gamma_b / a_factor * right);

  // What the sum was rounded by.
  const Tensor high = digamma(where(crossing, where(left, a, 1.0 + a), low + gap));
  const Tensor low_off = where(both, where(up, -lost, 0.0), where(up, 0.0, -lost));
  const Tensor change = where(crossing, high * lost, (high - digamma(low)) * low_off);
  const Tensor value = where(crossing, across, front * where(many, great, few)) * (1.0 + change);
  if (!kept) return value;
  const Tensor single = where(poles, value, where(pole, 0.0, where(end_pole, infinity, value)));
  return where(isnan(x + n), nan, where(equal(n, 0.0), 1.0, single));
}

/// Γ(x + n) Γ(1 − x) for x < ½; some number elsewhere.
Tensor two_gammas(const Tensor& x, const Tensor& n, CallSite user) {
  const FlatFunction f = [](Leaves in) -> Tensors {
    return {rising_factorial(in[0], in[1], Sine::left_out)};
  };
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    const Tensor high = digamma(in[0] + in[1]);
    return value * (i == 1 ? high : high - digamma(1.0 - minimum(in[0], number(0.5))));
  };
  const Tensor operands[] = {x, n};
  return with_slopes(f, slope, operands, user);
}

/// A function of two numbers that are broadcast and computed in f64.
template <class Function, class Slope>
Tensor of_two(const char* name, Operand& x, Operand& y, Function function, Slope slope) {
  const Composed composed(name, x, y);
  const CallSite user = user_line(x.where);
  const FlatFunction f = [function](Leaves in) -> Tensors { return {function(in[0], in[1])}; };
  const Shape shape =
      broadcast_shape(name, std::initializer_list<Tensor>{x.tensor, y.tensor}, user);
  const Tensor operands[] = {broadcast(x.tensor, shape, user), broadcast(y.tensor, shape, user)};
  return composed(with_slopes(f, slope, operands, user));
}

/// Γ(a) Γ(b) Γ(1 − a − b) where a + b < ½ and a or b is negative; some number elsewhere.
Tensor three_gammas(const Tensor& a, const Tensor& b, CallSite user) {
  const FlatFunction f = [](Leaves in) -> Tensors {
    return {reflected_beta(in[0], in[1], Sine::left_out).value()};
  };
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    return value * (digamma(in[i]) - digamma(1.0 - minimum(in[0] + in[1], number(0.5))));
  };
  const Tensor operands[] = {a, b};
  return with_slopes(f, slope, operands, user);
}

/// B(a, b) or log |B(a, b)|; the slopes are ψ(a) − ψ(a + b), times the result for B itself.
Tensor beta_or_log(const char* name, Operand& a, Operand& b, bool logarithm) {
  const auto f = [logarithm](const Tensor& x, const Tensor& y) {
    const Tensor both = logical_and(x > 0.0, y > 0.0),
                 finite = logical_and(both, logical_and(x < infinity, y < infinity));
    const Reflected r = reflected_beta(where(both, -0.5, x), where(both, -0.25, y));
    if (!logarithm) {
      const Reflected any{where(finite, 1.0, r.front), where(finite, x, r.p), where(finite, y, r.q),
                          logical_and(r.inverse, logical_not(finite)),
                          where(finite, 0.0, r.change)};
      return where(logical_and(both, logical_not(finite)), nan, any.value());
    }
    const Tensor size = abs(r.value()), plain = logical_and(size > 1e-290, size < 1e290);
    const Tensor otherwise = where(plain, log(where(plain, size, 1.0)), r.logarithm());
    return where(finite, betaln_positive(where(finite, x, 1.0), where(finite, y, 1.0)),
                 where(both, nan, otherwise));
  };
  const CallSite user = user_line(a.where);
  const auto slope = [logarithm, user](std::size_t i, Leaves x, const Tensor& value) {
    const Tensor s = x[0] + x[1];
    if (logarithm) return -difference_of_digamma(x[i], x[1 - i], s);
    // Where 1/Γ(a + b) may be 0, it is reflected: B ψ(a + b) = B ψ(1 − a − b) − Γ(a) Γ(b)
    // Γ(1 − a − b) cos(π (a + b)).
    const Tensor both = logical_and(x[0] > 0.0, x[1] > 0.0),
                 left = logical_and(logical_not(both), s < 0.5);
    const Tensor gammas = three_gammas(where(both, -0.5, x[0]), where(both, -0.25, x[1]), user);
    const Tensor mirror = 1.0 - where(left, s, 0.5);
    return where(left,
                 value * (digamma(x[i]) - digamma(mirror)) + gammas * cosine_of_turns(1.0 - mirror),
                 -value * difference_of_digamma(x[i], x[1 - i], s));
  };
  return of_two(name, a, b, f, slope);
}

}  // namespace vt::detail::incomplete

namespace vt {

namespace parts_of_gamma = detail::incomplete;
Tensor igamma(Operand a, Operand x) {
  return parts_of_gamma::incomplete_gamma_function("igamma", a, x, false);
}
Tensor igammac(Operand a, Operand x) {
  return parts_of_gamma::incomplete_gamma_function("igammac", a, x, true);
}

Tensor beta(Operand a, Operand b) { return parts_of_gamma::beta_or_log("beta", a, b, false); }
Tensor betaln(Operand a, Operand b) { return parts_of_gamma::beta_or_log("betaln", a, b, true); }

Tensor poch(Operand a, Operand m) {
  using namespace parts_of_gamma;
  const CallSite user = detail::user_line(a.where);
  const auto slope = [user](std::size_t i, Leaves in, const Tensor& value) {
    const Tensor &x = in[0], &n = in[1], end = x + n;
    const Tensor poles = logical_and(is_pole(x), is_pole(end));
    if (i == 1) return value * digamma(where(poles, 1.0 - end, end));
    // f (ψ(x + n) − ψ(x)), with Γ reflected where f may be 0 by it: at x, where only that is small,
    // π f cot(π x) = Γ(x + n) Γ(1 − x) cos(π x), or at both. Not where both are positive and near
    // one another.
    const Tensor left_of_half = x < 0.5, far = logical_or(n > x, minimum(x, end) <= 0.0);
    const Tensor both = logical_and(logical_and(left_of_half, end < 0.5), far),
                 across = logical_and(logical_and(left_of_half, end >= 0.5), far),
                 plain = logical_not(logical_or(across, both));
    const Tensor gammas = two_gammas(where(poles, -0.5, x), where(poles, 0.25, n), user);
    const Tensor mirror = 1.0 - where(plain, 0.5, x), above = where(across, end, 1.0);
    const Tensor crossing =
        value * (digamma(above) - digamma(mirror)) + gammas * cosine_of_turns(1.0 - mirror);
    const Tensor low = where(both, end, 0.5), steps = where(both, n, 0.0);
    const Tensor turned = where(poles, 0.0, sine_of_turns(steps, number(0))) /
                          sine_of_turns(where(poles, 0.5, low), number(0));
    const Tensor left =
        value * difference_of_digamma(where(both, 1.0 - x, 0.5), -steps, 1.0 - low) +
        gammas * turned;
    const Tensor right = value * difference_of_digamma(where(plain, x, 1.0), where(plain, n, 0.0),
                                                       where(plain, end, 1.0));
    return where(across, crossing, where(both, left, right));
  };
  const auto f = [](const Tensor& x, const Tensor& n) { return rising_factorial(x, n); };
  return of_two("poch", a, m, f, slope);
}

Tensor binom(Operand n, Operand k) {
  using namespace parts_of_gamma;
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    const Tensor &x = in[0], &y = in[1], rest = x - y, next = x + 1.0;
    // f (ψ(n + 1) − ψ(n − k + 1)) and f (ψ(n − k + 1) − ψ(k + 1)). Where f may be 0 by a pole of Γ
    // that is reflected: π f cot(π (k + 1)) = B(n + 1, −k) cos(π (k + 1)), for n − k too.
    const auto left = [](const Tensor& t) { return t < -0.5; };
    const auto reflected = [&](const Tensor& t) { return where(left(t), -t, t + 1.0); };
    const auto added = [&](const Tensor& t) {
      const Tensor own = where(left(t), t, -1.0);
      return where(left(t), vt::beta(where(left(t), next, 1.0), -own) * cosine_of_turns(own + 1.0),
                   0.0);
    };
    if (i == 0) {
      const Tensor steps = where(left(rest), next + rest, y);
      return value * difference_of_digamma(reflected(rest), steps, next) + added(rest);
    }
    const Tensor plain = logical_not(logical_or(left(y), left(rest))), from = reflected(y),
                 to = reflected(rest);
    return value * difference_of_digamma(from, where(plain, rest - y, to - from), to) +
           (added(y) - added(rest));
  };
  return of_two("binom", n, k, binomial, slope);
}

Tensor random_gamma_grad(Operand a, Operand x) {
  const detail::elementwise::Composed composed("random_gamma_grad", a, x);
  const CallSite where = detail::user_line(a.where);
  const Shape shape = detail::broadcast_shape(
      "random_gamma_grad", std::initializer_list<Tensor>{a.tensor, x.tensor}, where);
  const Tensor operands[] = {detail::broadcast(a.tensor, shape, where),
                             detail::broadcast(x.tensor, shape, where)};
  return composed(parts_of_gamma::sample_slope_function(operands, where));
}

Tensor expn(Operand n, Operand x) {
  const detail::elementwise::Composed composed("expn", n, x);
  const CallSite where = detail::user_line(n.where);
  const Shape shape =
      detail::broadcast_shape("expn", std::initializer_list<Tensor>{n.tensor, x.tensor}, where);
  const Tensor operands[] = {detail::broadcast(n.tensor, shape, where),
                             detail::broadcast(x.tensor, shape, where)};
  return composed(parts_of_gamma::exponential_integral_function(operands, where));
}

Tensor betainc(Operand a, Operand b, Operand x) {
  const detail::elementwise::Composed composed("betainc", a, b, x);
  const CallSite where = detail::user_line(a.where);
  const Shape shape = detail::broadcast_shape(
      "betainc", std::initializer_list<Tensor>{a.tensor, b.tensor, x.tensor}, where);
  const Tensor operands[] = {detail::broadcast(a.tensor, shape, where),
                             detail::broadcast(b.tensor, shape, where),
                             detail::broadcast(x.tensor, shape, where)};
  return composed(parts_of_gamma::incomplete_beta_function(operands, where));
}

}  // namespace vt
