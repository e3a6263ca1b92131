// Derivatives that are functions of their own: trigamma, composed of primitives so that it differentiates further.
#include <numbers>

#include "build.hpp"
#include "jvp.hpp"

namespace vt::detail::jvp_rules {

// ψ₁(x) for x ≥ 1/2: eight steps of ψ₁(x) = 1/x² + ψ₁(x + 1), then the asymptotic series at z = x + 8 ≥ 8.5 with Bernoulli
// numbers up to B₂₀, whose first dropped term is below 1e-17. Every term differentiates well, so the next derivatives
// (tetragamma …) hold too.
inline grad_build::Val trigamma_right(const grad_build::Val& x) {
  using namespace grad_build;
  Val sum = 1.0 / (x * x);
  for (int k = 1; k < 8; ++k) {
    const Val shifted = x + static_cast<double>(k);
    sum = sum + 1.0 / (shifted * shifted);
  }
  const Val r = 1.0 / (x + 8.0), r2 = r * r;
  constexpr double bernoulli[] = {1.0 / 6,       -1.0 / 30, 1.0 / 42,      -1.0 / 30,     5.0 / 66,
                                  -691.0 / 2730, 7.0 / 6,   -3617.0 / 510, 43867.0 / 798, -174611.0 / 330};
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
  // The sine is taken of the distance to the nearest integer, so that poles are poles; away from the left half it sees a
  // harmless constant, so that no infinity meets a zero cotangent.
  const Val near = choose(left, x - Val(unary(Op::round, x)), scalar(d, 0.5));
  const Val cosecant = std::numbers::pi / sin_of(std::numbers::pi * near);
  return convert_to(choose(left, cosecant * cosecant - right, right), own);
}

}  // namespace vt::detail::jvp_rules
