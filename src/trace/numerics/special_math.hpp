// The special functions, each written once for every number type: double (the interpreter) and
// vectors of the compiled code.
//
// N has arithmetic, comparisons that give masks, and the functions below; masks combine by & and |.
// Where a function has several ranges all are computed and one is selected. Within 8 ulp; the
// oscillating Bessel functions within 8 ulp of their amplitude.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <numbers>
#include <span>
#include <utility>

#include "special_tables.hpp"

namespace vt::detail::special_math {

// --- what double needs to be such a type; the compiled code's is in src/jit/cpu/math/families.cpp

inline double select(bool mask, double a, double b) { return mask ? a : b; }
inline bool equal(double a, double b) { return a == b; }
inline double abs(double x) { return std::fabs(x); }
inline double sqrt(double x) { return std::sqrt(x); }
inline double trunc(double x) { return std::trunc(x); }
inline double round_of(double x) { return std::nearbyint(x); }
inline double exp_of(double x) { return std::exp(x); }
inline double log_of(double x) { return std::log(x); }
inline double log1p_of(double x) { return std::log1p(x); }
inline double erf_of(double x) { return std::erf(x); }
inline double sin_of(double x) { return std::sin(x); }
inline double cos_of(double x) { return std::cos(x); }
inline double pow_of(double x, double y) { return std::pow(x, y); }
inline double copysign(double magnitude, double sign) { return std::copysign(magnitude, sign); }
inline double at_most(double x, double limit) { return limit < x ? limit : x; }
inline double at_least(double x, double limit) { return limit > x ? limit : x; }
inline double like(double, double value) { return value; }
inline std::pair<double, double> two_product(double a, double b) {
  return {a * b, std::fma(a, b, -(a * b))};
}
inline double polynomial(double x, std::span<const double> c) {
  double r = c.back();
  for (std::size_t k = c.size() - 1; k-- > 0;) r = r * x + c[k];
  return r;
}
/// Runs `body(state)` → state while `going(state)` has a SIMD lane that is true; a SIMD lane keeps
/// its state once it is false there.
template <class Going, class Body>
double iterate(double state, double, const Going& going, const Body& body) {
  for (double k = 0; going(k); k += 1) state = body(state, k);
  return state;
}

inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A table's polynomial at x.
template <class N, std::size_t size>
N fitted(N x, const double (&table)[size]) {
  const std::span<const double> c(table + 2, size - 2);
  return polynomial(table[0] == 0 ? x * table[1] : (x - table[0]) * table[1], c);
}

// --- the gamma function --------------------------------------------------------------------------

/// Γ. ±∞ at ±0, NaN at the negative integers and at −∞.
template <class N>
N gamma(N x) {
  const N y = abs(x);
  // Below 8.5 from [1½, 2½), by products or quotients with what lies between.
  N factor = like(y, 1.0), rest = y;
  for (int step = 0; step < 6; ++step) {
    const auto above = (rest >= 2.5) & (y < 8.5);
    const N below = rest - 1.0;
    factor = select(above, factor * below, factor);
    rest = select(above, below, rest);
  }
  const auto low = y < 0.5, middle = y < 1.5;
  const N divisor = select(low, y * (y + 1.0), select(middle, y, like(y, 1.0)));
  rest = select(low, y + 2.0, select(middle, y + 1.0, rest));
  const N near = fitted(rest - 2.0, special_tables::gamma_2) * factor / divisor;
  // Above by Stirling's formula, whose power overflows long before Γ does: it is taken in two
  // halves.
  const N z = at_most(at_least(y, 8.5), 200.0);  // beyond, Γ overflows and its inverse underflows
  const N half = pow_of(z, z * 0.5 - 0.25);
  const N rest_of_stirling =
      half * exp_of(-z) * (fitted(1.0 / z, special_tables::gamma_star) * 2.5066282746310005024);
  const auto far = y >= 8.5;
  // Γ(−y) = −π / (y sin(πy) Γ(y))
  const N nearest = round_of(y), r = y - nearest;
  const N parity = nearest * 0.5 - trunc(nearest * 0.5);
  const N sine = sin_of(r * std::numbers::pi);
  const N quotient =
      select(equal(parity, 0.0), like(y, -1.0), like(y, 1.0)) * (std::numbers::pi / (y * sine));
  const N reflected = select(far, quotient / rest_of_stirling / half, quotient / near);
  N result = select(x < 0.0, reflected, select(far, rest_of_stirling * half, near));
  result = select((x < 0.0) & equal(x, trunc(x)), like(x, nan), result);
  return select(abs(x) < 0x1p-60, 1.0 / x, result);  // the rest of it does not count
}

// --- the error functions -------------------------------------------------------------------------

/// exp(x²) erfc(x)
template <class N>
N erfcx(N x) {
  const N y = abs(x), capped = at_most(y, 1e17);
  const N right = fitted((capped - 2.0) / (capped + 2.0), special_tables::erfcx) * 0.5 / (y + 0.5);
  const N small = at_most(y, 30.0);
  const auto [square, low] = two_product(small, small);
  const N e = exp_of(square);
  return select(equal(x, 0.0), like(x, 1.0),
                select(x < 0.0, 2.0 * (e * (low + 1.0)) - right, right));
}

/// The inverse of erfc. ∞ at 0, −∞ at 2, NaN outside.
template <class N>
N erfc_inv(N q) {
  const N x = 1.0 - q, p = select(q < 1.0, q, 2.0 - q);
  const N w = -log_of(p * (2.0 - p)), s = sqrt(at_least(w, 4.0));
  N ratio = fitted(w, special_tables::erf_inv_low);
  ratio = select(w < 5.0, ratio, fitted(s, special_tables::erf_inv_middle));
  ratio = select(s > 3.6, fitted(s, special_tables::erf_inv_high), ratio);
  ratio = select(s > 6.6, fitted(s, special_tables::erf_inv_higher), ratio);
  ratio = select(s > 13.0, fitted(s, special_tables::erf_inv_highest), ratio);
  const N inside = x * ratio;
  const N ends = select(equal(p, 0.0), copysign(like(x, infinity), x), like(x, nan));
  return select((q > 0.0) & (q < 2.0), inside, ends);
}

/// The normal distribution's tail beyond |x| as size · exp(−(square + low)), exact exponents
/// keeping all its digits.
template <class N>
struct NormalTail {
  N size, square, low;
};
template <class N>
NormalTail<N> normal_tail(N x) {
  const N a = abs(x), capped = at_most(a, 1e154);
  const auto [square, low] = two_product(capped, capped);
  return {erfcx(a * (1 / std::numbers::sqrt2)) * 0.5, square * 0.5, low * 0.5};
}

/// The normal distribution's function.
template <class N>
N ndtr(N x) {
  const auto [size, square, low] = normal_tail(at_least(x, -1e3));
  const N tail = size * (exp_of(-square) * (1.0 - low));
  return select(x < 0.0, tail, 1.0 - tail);
}

template <class N>
N log_ndtr(N x) {
  const auto [size, square, low] = normal_tail(x);
  const N half = erf_of(abs(x) * (1 / std::numbers::sqrt2)) * 0.5;
  const N above = select(x > 1.0, size * (exp_of(-square) * (1.0 - low)), 0.5 - half);
  const N left = select(x < -1.0, log_of(size) - low - square, log_of(0.5 - half));
  return select(x < 0.0, select(x < -1e154, like(x, -infinity), left), log1p_of(-above));
}

/// Dawson's integral: exp(−x²) ∫₀ˣ exp(t²) dt
template <class N>
N dawsn(N x) {
  const N a = abs(x), z = at_most(a, 2.0);
  const N small = x * fitted(z * z, special_tables::dawson_small);
  const N inverse = 1.0 / at_least(a, 4.0);
  const N large = select(a < 4.0, fitted(at_most(a, 4.0), special_tables::dawson_middle),
                         fitted(inverse * inverse, special_tables::dawson_large) * 0.5 * inverse);
  return select(a < 2.0, small, copysign(large, x));
}

// --- Bessel functions ----------------------------------------------------------------------------

/// exp(−|x|) I₀(x)
template <class N>
N bessel_i0e(N x) {
  const N a = abs(x), z = at_most(a, 8.0);
  const N small = exp_of(-z) * fitted(z * z * 0.25, special_tables::i0_small);
  const N b = at_least(a, 8.0);
  return select(a < 8.0, small, fitted(1.0 / b, special_tables::i0e_large) / sqrt(b));
}

/// exp(−|x|) I₁(x)
template <class N>
N bessel_i1e(N x) {
  const N a = abs(x), z = at_most(a, 8.0);
  const N small = x * 0.5 * exp_of(-z) * fitted(z * z * 0.25, special_tables::i1_small);
  const N b = at_least(a, 8.0);
  return select(a < 8.0, small, copysign(fitted(1.0 / b, special_tables::i1e_large) / sqrt(b), x));
}

/// exp(x) K₀(x). ∞ at 0, NaN below.
template <class N>
N bessel_k0e(N x) {
  const N s = at_most(x, 1.0), z = s * s * 0.25;
  const N small = exp_of(s) * (fitted(z, special_tables::k0_small) -
                               log_of(s * 0.5) * fitted(z, special_tables::i0_small));
  const N b = at_least(x, 1.0), r = 1.0 / b;
  const N large =
      select(b < 3.0, fitted(r, special_tables::k0e_middle), fitted(r, special_tables::k0e_large)) /
      sqrt(b);
  return select(x < 1.0, small, large);
}

/// exp(x) K₁(x). ∞ at 0, NaN below.
template <class N>
N bessel_k1e(N x) {
  const N s = at_most(x, 1.0), z = s * s * 0.25;
  const N log_term = s * log_of(s * 0.5) * (s * 0.5) * fitted(z, special_tables::i1_small);
  const N small = exp_of(s) * (1.0 + (log_term + z * fitted(z, special_tables::k1_small))) / s;
  const N b = at_least(x, 1.0), r = 1.0 / b;
  const N large =
      select(b < 3.0, fitted(r, special_tables::k1e_middle), fitted(r, special_tables::k1e_large)) /
      sqrt(b);
  return select(equal(x, 0.0), like(x, infinity), select(x < 1.0, small, large));
}

/// Hankel's form for a ≥ 5: J = (p·u − q·v)/√(πa), Y = (p·v + q·u)/√(πa) with u, v = cos ± sin of
/// a.
template <class N>
struct Oscillation {
  N p, q, sum, difference, size;
};
template <class N, std::size_t p_size, std::size_t q_size>
Oscillation<N> oscillation(N a, const double (&p)[p_size], const double (&q)[q_size]) {
  const N b = at_least(a, 5.0), inverse = 1.0 / b, r = inverse * inverse;
  const N s = sin_of(b), c = cos_of(b);
  return {fitted(r, p), inverse * fitted(r, q), c + s, s - c, 1.0 / sqrt(b * std::numbers::pi)};
}

/// J₀ for 0 ≤ x ≤ 5, with its zeros as factors, so that they are zeros.
template <class N>
N j0_small(N x) {
  const auto from = [&](const double(&zero)[2]) {
    return ((x - zero[0]) - zero[1]) * (x + zero[0]);
  };
  return from(special_tables::j0_zero_1) * from(special_tables::j0_zero_2) *
         fitted(x * x, special_tables::j0_small);
}
template <class N>
N j1_small(N x) {
  return x *
         (((x - special_tables::j1_zero_1[0]) - special_tables::j1_zero_1[1]) *
          (x + special_tables::j1_zero_1[0])) *
         fitted(x * x, special_tables::j1_small);
}

template <class N>
N bessel_j0(N x) {
  const N a = abs(x);
  const auto w = oscillation(a, special_tables::p0, special_tables::q0);
  const N large = (w.p * w.sum - w.q * w.difference) * w.size;
  const N inner = select(equal(a, 0.0), like(a, 1.0), j0_small(at_most(a, 5.0)));
  return select(a < 5.0, inner, select(equal(a, infinity), like(a, 0.0), large));
}
template <class N>
N bessel_j1(N x) {
  const N a = abs(x);
  const auto w = oscillation(a, special_tables::p1, special_tables::q1);
  const N large = (w.p * w.difference + w.q * w.sum) * w.size;
  const N right =
      select(a < 5.0, j1_small(at_most(a, 5.0)), select(equal(a, infinity), like(a, 0.0), large));
  return select(x < 0.0, -right, select(equal(x, 0.0), x, right));
}
/// −∞ at 0, NaN below.
template <class N>
N bessel_y0(N x) {
  const N s = at_most(x, 5.0);
  const N small = log_of(s) * j0_small(s) * (2 * std::numbers::inv_pi) +
                  fitted(s * s, special_tables::y0_small);
  const auto w = oscillation(x, special_tables::p0, special_tables::q0);
  const N large = (w.p * w.difference + w.q * w.sum) * w.size;
  return select(x < 5.0, small, select(equal(x, infinity), like(x, 0.0), large));
}
template <class N>
N bessel_y1(N x) {
  const N s = at_most(x, 5.0);
  const N small = (log_of(s) * j1_small(s) - 1.0 / s) * (2 * std::numbers::inv_pi) +
                  s * fitted(s * s, special_tables::y1_small);
  const auto w = oscillation(x, special_tables::p1, special_tables::q1);
  const N large = (w.q * w.difference - w.p * w.sum) * w.size;
  const N right = select(x < 5.0, small, select(equal(x, infinity), like(x, 0.0), large));
  return select(equal(x, 0.0), like(x, -infinity), right);
}

// --- integrals -----------------------------------------------------------------------------------

/// Ei(x) = −∫₋ₓ^∞ exp(−t)/t dt. −∞ at 0.
template <class N>
N expi(N x) {
  // −E₁(−x)
  const N y = abs(x), one = at_most(y, 1.0), capped = at_most(at_least(y, 1.0), 1e17);
  const N e1 =
      select(y < 1.0, fitted(one, special_tables::e1_small) - log_of(one),
             exp_of(-y) / y * fitted((capped - 3.0) / (capped + 3.0), special_tables::e1_large));
  const N s = at_most(y, 6.0), d = (s - special_tables::ei_zero[0]) - special_tables::ei_zero[1];
  const N quotient = select(s < 0.2, log_of(s * (1 / special_tables::ei_zero[0])),
                            log1p_of(at_least(d * (1 / special_tables::ei_zero[0]), -0.5)));
  const N small = quotient + d * fitted(s, special_tables::ei_small);
  const N r = 1.0 / at_least(y, 6.0);
  N series = select(y < 12.0, fitted(r, special_tables::ei_6), fitted(r, special_tables::ei_12));
  series =
      select(y < 24.0, series,
             select(y < 48.0, fitted(r, special_tables::ei_24), fitted(r, special_tables::ei_48)));
  // The exponential overflows before the quotient does.
  const auto great = y > 690.0;
  const N growth = exp_of(select(great, y - 20.0, y)) * r *
                   select(great, like(y, 485165195.40979027797), like(y, 1.0));
  const N positive = select(y < 6.0, small, select(equal(y, infinity), y, growth * series));
  return select(x < 0.0, -e1, select(equal(x, 0.0), like(x, -infinity), positive));
}

/// Li₂(1 − x) = −∫₁ˣ log(t)/(t − 1) dt. NaN below 0.
template <class N>
N spence(N x) {
  const auto small = x < 0.5, great = x > 2.0;
  const N inverse = 1.0 / at_least(x, 1.0);
  const N y = select(small, x, select(great, inverse, 1.0 - x));  // in [−1, ½]
  const N series = y * fitted(y, special_tables::li2);
  const N l = log_of(x), product = l * log1p_of(-select(small | great, y, like(y, 0.0)));
  constexpr double sixth = std::numbers::pi * std::numbers::pi / 6;
  const N near = sixth - select(equal(x, 0.0), x, product) - series;
  const N far = (series - product) - (l * l * 0.5 + sixth);
  return select(small, near,
                select(great, select(equal(x, infinity), -x, far),
                       select(equal(x, 1.0), like(x, 0.0), series)));
}

/// Of ½ π x², for x ≥ 1.6: the integrals from x on are f·cos + g·sin and g·cos − f·sin, with a
/// minus for the cosine's.
template <class N>
struct FresnelTail {
  N f, g, sine, cosine;
};
template <class N>
FresnelTail<N> fresnel_tail(N a) {
  const N b = at_most(at_least(a, 1.6), 1e17);
  const auto [square, low] = two_product(b, b);
  const N turn = square - 4.0 * round_of(square * 0.25);  // exact: the period is 4
  const N angle = (turn + low) * (std::numbers::pi / 2), r = 1.0 / square;
  const N size = 1.0 / (b * std::numbers::pi);
  return {size * fitted(r, special_tables::fresnel_f),
          size * r * std::numbers::inv_pi * fitted(r, special_tables::fresnel_g), sin_of(angle),
          cos_of(angle)};
}
/// S(x) = ∫₀ˣ sin(½πt²) dt
template <class N>
N fresnel_sin(N x) {
  const N a = abs(x), s = at_most(a, 1.6), z = s * s;
  const auto w = fresnel_tail(a);
  const N small = s * z * fitted(z * z, special_tables::fresnel_s),
          large = 0.5 - (w.f * w.cosine + w.g * w.sine);
  return copysign(select(a < 1.6, small, large), x);
}
/// C(x) = ∫₀ˣ cos(½πt²) dt
template <class N>
N fresnel_cos(N x) {
  const N a = abs(x), s = at_most(a, 1.6), z = s * s;
  const auto w = fresnel_tail(a);
  const N small = s * fitted(z * z, special_tables::fresnel_c),
          large = 0.5 + (w.f * w.sine - w.g * w.cosine);
  return copysign(select(a < 1.6, small, large), x);
}

// --- Hurwitz' zeta function ----------------------------------------------------------------------

/// B₂ₖ / (2k)! for k = 1 …; what follows after a term adds less than the last digit.
inline constexpr double bernoulli_over_factorial[] = {1.0 / 12,
                                                      -1.0 / 720,
                                                      1.0 / 30240,
                                                      -1.0 / 1209600,
                                                      1.0 / 47900160,
                                                      -1.0 / 1892437580.31837916064,
                                                      1.0 / 74724249600.0,
                                                      -1.0 / 2950130727918.16422450,
                                                      1.0 / 116467828143500.672487,
                                                      -1.0 / 4597978722407472.61055};
inline constexpr int zeta_terms = 12;  ///< that are added up one by one, at least
/// Below this not all the terms from q on are added up.
inline constexpr double zeta_lowest = -64;

/// Σ (a + k)^power over k ≥ 0 for a ≥ zeta_terms, by Euler and Maclaurin.
template <class N>
N zeta_tail(N a, N power) {
  const N inverse = 1.0 / a, square = inverse * inverse;
  const N b = pow_of(a, power + 1.0);  // exact; a^-s itself vanishes long before the tail does
  N term = -power * inverse, rest = like(a, 0.5);
  for (int k = 0; k < 10; ++k) {
    rest = rest + term * bernoulli_over_factorial[k];
    term = term * ((2.0 * k + 1.0) - power) * ((2.0 * k + 2.0) - power) * square;
  }
  return select(equal(b, 0.0), b, b * (1.0 / (-power - 1.0) + inverse * rest));
}

/// Σ (q + k)^−s over k ≥ 0: NaN for s < 1, ∞ for s = 1 and where q is 0 or a negative integer; for
/// other negative q NaN unless s is an integer.
template <class N>
N zeta(N s, N q) {
  // Far on the left the terms begin near 0 instead, at `start`.
  const auto usable = s > 1.0, far = q < zeta_lowest;
  const N fraction = select(far, q - round_of(q), q), start = fraction - 24.0;
  const N from = select(usable, select(far, start, q), like(q, 1.0)),
          power = select(usable, -at_most(s, 1e30), like(s, -2.0));
  // q + k is rounded: what is lost of it comes back through the derivative of the power.
  const N sum = iterate(
      like(q, 0.0), from,
      [&](const N& k) {
        return (k < static_cast<double>(zeta_terms)) | (from + k < static_cast<double>(zeta_terms));
      },
      [&](const N& so_far, const N& k) {
        const N a = from + k, t = a - from, lost = (from - (a - t)) + (k - t),
                term = pow_of(a, power);
        return so_far + term * (power * lost / a + 1.0);
      });
  // The first place after them.
  const N missing = at_least(zeta_terms - from, static_cast<double>(zeta_terms));
  const N count = select(missing > trunc(missing), trunc(missing) + 1.0, missing);
  N result = sum + zeta_tail(from + count, power);
  // Those between q and `start`, which are as many powers of positive numbers: the difference of
  // two tails.
  const N between = iterate(
      like(q, 0.0), q, [&](const N& k) { return far & (k < 2.0); },
      [&](const N& so_far, const N& k) {
        return zeta_tail(select(equal(k, 0.0), 1.0 - start, 1.0 - q), power) - so_far;
      });
  const N half = 0.5 * s;
  result =
      select(far, select(equal(half, trunc(half)), result - between, result + between), result);
  result = select((q > 0.0) | equal(s, trunc(s)), result, like(s, nan));
  result =
      select(q > 0.0, result, select(equal(fraction, trunc(fraction)), like(s, infinity), result));
  return select(s > 1.0, select(equal(q, infinity), like(q, 0.0), result),
                select(equal(s, 1.0), like(s, infinity), like(s, nan)));
}

}  // namespace vt::detail::special_math
