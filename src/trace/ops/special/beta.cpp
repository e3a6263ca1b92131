// The beta function, the incomplete beta function, binomials and quotients of gamma functions.
#include <vt/special.hpp>

#include <cmath>
#include <numbers>

#include "../support/composed.hpp"
#include "prefixes.hpp"

namespace vt::detail::incomplete {

using element_functions::Leaves;  // not the one around
using elementwise::Composed;

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

/// A product whose factors are numbers where it itself need not be one.
struct Product {
  Tensor first, second;
};
/// B(a, b) for 0 < a, b: by gamma functions as long as these fit, else by what is left of them
/// beside Stirling's powers.
Product beta_positive(const Tensor& a, const Tensor& b) {
  const Tensor p = minimum(a, b), q = maximum(a, b), s = a + b, lost = lost_in_sum(a, b, s);
  const Tensor few = s <= 100.0, s_few = where(few, s, 1.0);
  const Tensor near = vt::special::gamma(where(few, p, 1.0)) *
                      (vt::special::gamma(where(few, q, 1.0)) / vt::special::gamma(s_few)) *
                      (1.0 - stop_gradient(digamma(s_few) * lost));
  const Tensor large = p > 8.5, P = where(large, p, 8.5), Q = where(few, 100.0, q),
               S = where(few, 100.0, s);
  const Tensor stars = gamma_star(Q) / gamma_star(S);
  const Tensor both = std::sqrt(2 * std::numbers::pi) * stars * gamma_star(P) * sqrt(S / (P * Q)) *
                      power_of_quotient(P, S, P);
  const Tensor little = where(large, 1.0, p);
  const Tensor one = vt::special::gamma(little) * stars * pow(S, -little) * exp(little);
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
  // Neither P + Q nor P Q need be a number.
  const Tensor half = 0.5 * P + 0.5 * Q, part = 0.5 * P / half;
  const Tensor both = P * log(part) + Q * log1p(-part) +
                      0.5 * log(2 * std::numbers::pi * (half / (0.5 * Q) / P)) +
                      (log(gamma_star(P)) + stars);
  const Tensor little = where(large, 1.0, p);
  const Tensor one =
      lgamma(little) + (Q - 0.5) * log1p(-little / S) - little * (log(S) - 1.0) + stars;
  return where(few, near, where(large, both, one));
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
  const Tensor gaps = vt::special::gamma(few_gap),
               few = where(up, gaps / beta.first / beta.second, beta.first * beta.second / gaps);
  // Where Γ(gap) is no number: by Stirling's powers in quarters. Only for small `low` the result
  // may be one.
  const Tensor from = minimum(low, number(3)), much = where(many, minimum(gap, number(500)), 170.0),
               at = from + much;
  const Tensor quarter = pow(at, 0.25 * at - 0.125), base = vt::special::gamma(from),
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
  const Tensor gamma_a = vt::special::gamma(where(a_large, a - 1.0, a)),
               gamma_b = vt::special::gamma(b),
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
Tensor special::beta(Operand a, Operand b) {
  return parts_of_gamma::beta_or_log("special::beta", a, b, false);
}
Tensor special::betaln(Operand a, Operand b) {
  return parts_of_gamma::beta_or_log("special::betaln", a, b, true);
}

Tensor special::poch(Operand a, Operand m) {
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
  return of_two("special::poch", a, m, f, slope);
}

Tensor special::binom(Operand n, Operand k) {
  using namespace parts_of_gamma;
  const auto slope = [](std::size_t i, Leaves in, const Tensor& value) {
    const Tensor &x = in[0], &y = in[1], rest = x - y, next = x + 1.0;
    // f (ψ(n + 1) − ψ(n − k + 1)) and f (ψ(n − k + 1) − ψ(k + 1)). Where f may be 0 by a pole of Γ
    // that is reflected: π f cot(π (k + 1)) = B(n + 1, −k) cos(π (k + 1)), for n − k too.
    const auto left = [](const Tensor& t) { return t < -0.5; };
    const auto reflected = [&](const Tensor& t) { return where(left(t), -t, t + 1.0); };
    const auto added = [&](const Tensor& t) {
      const Tensor own = where(left(t), t, -1.0);
      return where(left(t), beta(where(left(t), next, 1.0), -own) * cosine_of_turns(own + 1.0),
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
  return of_two("special::binom", n, k, binomial, slope);
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
