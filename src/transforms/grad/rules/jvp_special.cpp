// Derivatives that are functions of their own, composed of primitives so that they differentiate
// further: trigamma, Bessel functions, zeta.
#include <numbers>

#include "../../../trace/numerics/special_math.hpp"
#include "../build.hpp"
#include "../jvp.hpp"

namespace vt::detail::jvp_rules {

// ψ₁(x) for x ≥ 1/2: eight steps of ψ₁(x) = 1/x² + ψ₁(x + 1), then the asymptotic series at
// z = x + 8 ≥ 8.5 with Bernoulli numbers up to B₂₀, whose first dropped term is below 1e-17. Every
// term differentiates well, so the next derivatives (tetragamma …) hold too.
inline grad_build::Val trigamma_right(const grad_build::Val& x) {
  using namespace grad_build;
  Val sum = 1.0 / (x * x);
  for (int k = 1; k < 8; ++k) {
    const Val shifted = x + static_cast<double>(k);
    sum = sum + 1.0 / (shifted * shifted);
  }
  const Val r = 1.0 / (x + 8.0), r2 = r * r;
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30,      1.0 / 42, -1.0 / 30,
                                  5.0 / 66,      -691.0 / 2730,  7.0 / 6,  -3617.0 / 510,
                                  43867.0 / 798, -174611.0 / 330};
  Val series = bernoulli[9] * r2;
  for (int k = 8; k >= 0; --k) series = (series + bernoulli[k]) * r2;
  return sum + r * (1.0 + 0.5 * r + series);
}

// Reflection for x < 1/2: ψ₁(x) = (π / sin πx)² − ψ₁(1 − x).
Tensor trigamma(const Tensor& operand) {
  using namespace grad_build;
  const DType own = operand.dtype();
  const bool narrow = size_of(own) < 4;  // the sum needs more digits than a 16-bit float has
  const Val x = narrow ? convert_to(operand, DType::f32) : operand;
  const DType d = x.t.dtype();
  const Tensor left = binary(Op::lt, x, scalar(d, 0.5));
  const Val right = trigamma_right(choose(left, 1.0 - x, x));
  // The sine is taken of the distance to the nearest integer, so that poles are poles; away from
  // the left half it sees a harmless constant, so that no infinity meets a zero cotangent.
  const Val near = choose(left, x - Val(unary(Op::round, x)), scalar(d, 0.5));
  const Val cosecant = std::numbers::pi / sin_of(std::numbers::pi * near);
  return convert_to(choose(left, cosecant * cosecant - right, right), own);
}

// log(x) / (1 − x), by its series around 1.
Tensor spence(const JvpCall& c) {
  using namespace grad_build;
  const Val x = c.x[0], d = x - 1.0;
  const DType dtype = c.y.dtype();
  const Tensor near = binary(Op::lt, unary(Op::abs, d), scalar(dtype, 0.02));
  const Val inside = choose(near, d, scalar(dtype, 0)), outside = choose(near, scalar(dtype, 1), d);
  Val series = scalar(dtype, 1.0 / 11);
  for (int k = 10; k >= 1; --k) series = 1.0 / k - inside * series;
  const Val far = Val(unary(Op::log, choose(near, scalar(dtype, 2), x))) / outside;
  return Val(c.t[0]) * -Val(choose(near, series, far));
}

// I₁(x)/x and J₁(x)/x are even and smooth, of which the quotients show nothing at 0: there by the
// series Σ (±x²/4)ᵏ / (2 k! (k + 1)!).
inline grad_build::Val bessel_quotient(const grad_build::Val& x, const grad_build::Val& y,
                                       double sign, bool scaled) {
  using namespace grad_build;
  const DType dtype = x.t.dtype();
  const Val size = unary(Op::abs, x);
  const Tensor near = binary(Op::lt, size, scalar(dtype, 0.5));
  const Val inside = choose(near, x, scalar(dtype, 0)), z = sign / 4 * (inside * inside);
  constexpr int terms = 9;
  Val series = scalar(dtype, 1);
  for (int k = terms; k >= 1; --k) series = 1.0 + z / static_cast<double>(k * (k + 1)) * series;
  series = 0.5 * series;
  if (scaled) series = series * exp_of(-size);
  return choose(near, series, y / Val(choose(near, scalar(dtype, 1), x)));
}

Tensor bessel_i0e(const JvpCall& c) {
  using namespace grad_build;
  return Val(c.t[0]) *
         (Val(unary(Op::bessel_i1e, c.x[0])) - Val(unary(Op::sign, c.x[0])) * Val(c.y));
}
Tensor bessel_i1e(const JvpCall& c) {
  using namespace grad_build;
  const Val i0e = unary(Op::bessel_i0e, c.x[0]);
  return Val(c.t[0]) *
         (i0e - Val(unary(Op::sign, c.x[0])) * Val(c.y) - bessel_quotient(c.x[0], c.y, 1, true));
}
Tensor bessel_j1(const JvpCall& c) {
  using namespace grad_build;
  return Val(c.t[0]) *
         (Val(unary(Op::bessel_j0, c.x[0])) - bessel_quotient(c.x[0], c.y, -1, false));
}

// By s: the sum of Euler and Maclaurin, term by term. With b = a^−s and T = b·(a/(s − 1) + ½ + Σ cₖ
// s(s + 1)…(s + 2k − 2) / a^(2k−1)) its tail from a = q + n on, T' has − log a and Σ 1/(s + i) as
// further factors.
inline grad_build::Val zeta_by_s(const grad_build::Val& s, const grad_build::Val& q) {
  using namespace grad_build;
  const auto power = [&](const Val& a) { return Val(binary(Op::pow, a, -s)); };
  const auto log_of = [](const Val& a) { return Val(unary(Op::log, a)); };
  Val sum = -(log_of(q) * power(q));
  for (int k = 1; k < special_math::zeta_terms; ++k) {
    const Val a = q + static_cast<double>(k);
    sum = sum - log_of(a) * power(a);
  }
  const Val a = q + static_cast<double>(special_math::zeta_terms), l = log_of(a), inverse = 1.0 / a,
            square = inverse * inverse;
  const Val less = 1.0 / (s - 1.0);
  Val tail = -(a * less * (l + less)) - 0.5 * l;
  Val term = s * inverse, slopes = 1.0 / s;
  for (int k = 0; k < 10; ++k) {
    tail = tail + special_math::bernoulli_over_factorial[k] * (term * (slopes - l));
    const Val first = s + (2.0 * k + 1), second = s + (2.0 * k + 2);
    term = term * first * second * square;
    slopes = slopes + 1.0 / first + 1.0 / second;
  }
  return sum + power(a) * tail;
}

Tensor zeta(const JvpCall& c) {
  using namespace grad_build;
  const Val s = c.x[0], q = c.x[1];
  const DType own = c.y.dtype(), wide = size_of(own) < 4 ? DType::f32 : own;  // as for trigamma
  Tensor sum;
  if (c.has(0))
    sum = Val(c.t[0]) * Val(convert_to(zeta_by_s(convert_to(s, wide), convert_to(q, wide)), own));
  if (c.has(1)) sum = sum_of(sum, Val(c.t[1]) * -(s * Val(binary(Op::zeta, s + 1.0, q))));
  return sum;
}

}  // namespace vt::detail::jvp_rules
